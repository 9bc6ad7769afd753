"""What the accounts of providers share: ways to sign in, the stored credential, the printed usage.

    token_endpoint.py   the issuer's token endpoint, for one public OAuth client
    browser_sign_in.py  authorization code with PKCE, through a browser on this machine
    device_sign_in.py   device code (RFC 8628), confirmed in any browser
    stored.py           storing, showing and deleting the credential
    usage_report.py     one question about the usage, printed

A provider's `account/signin.py` has its addresses, client id and claims, and where its issuer differs.
"""
