"""What has to hold before a version is given away. With the standard library alone: what is installed for it lies in a
folder of its own, see `environments`."""
