"""Who answers: a request is prepared for a candidate, asked, and passed on."""
