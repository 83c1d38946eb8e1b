"""The size of things: when a module passes 400 lines it holds two, when a function passes 60 it is a program."""

import statistics

from support.source import PACKAGE, ROOMS, functions, modules

MODULE_LINES = 400
FUNCTION_LINES = 60
MEDIAN_LINES = 150


def test_no_module_is_longer_than_400_lines() -> None:
    long = {module.name: module.lines for module in modules(*ROOMS) if module.lines > MODULE_LINES}
    assert not long


def test_no_function_is_longer_than_60_lines() -> None:
    measured = [found for module in modules(*ROOMS) for found in functions(module)]
    long = {place: length for place, length in measured if length > FUNCTION_LINES}
    assert measured
    assert not long


def test_the_median_module_has_at_most_150_lines() -> None:
    sizes = [module.lines for module in modules(PACKAGE.name) if module.text.strip()]
    assert statistics.median(sizes) <= MEDIAN_LINES
