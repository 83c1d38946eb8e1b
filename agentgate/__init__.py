"""agentgate makes the effects of AI agents safe to allow."""
