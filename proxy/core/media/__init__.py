"""Images and audio: checks requests and answers, and reads large bodies without holding them twice."""
