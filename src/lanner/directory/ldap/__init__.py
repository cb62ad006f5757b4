"""Active Directory over LDAP as the directory: MS-MQDSSM."""
