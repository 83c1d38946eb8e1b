"""The synchronous shell: thinking before the transaction, the transaction, the call, what follows the commit."""
