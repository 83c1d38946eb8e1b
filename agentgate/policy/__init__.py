"""Who may say no: the question a policy is asked, its answer, its identity, and the asking itself.

Import from the submodules: ``request``, ``decision``, ``identity``, ``evaluation``, ``facts``, ``rules``,
``loading``. A policy stores nothing and causes nothing; what it answers is recorded by the gate.
"""
