"""What people are shown before they decide: plain text made from canonical bytes, the same for every surface."""
