"""The facts that kvcore ships, installed as `kvcore.data` (see README.md here)."""
