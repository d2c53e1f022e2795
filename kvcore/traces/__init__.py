"""Traffic on file: requests with their lengths, and the prefix blocks they share."""
