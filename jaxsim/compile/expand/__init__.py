"""What is written in short is written out: attachments, replicates, classes; bodies are joined."""
