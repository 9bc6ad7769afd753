"""Images and audio: what may be asked for, how a large body is read without being held twice, and what is an answer."""
