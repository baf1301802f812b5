// A self-signed certificate for localhost, valid until 2120, for tests that need TLS. Its key is public.

const KEY = `
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbxnq5ai/V2QvtRyM
nKPMQChGDsjNbKlPUuAyfbKSEByhRANCAARESLWInQVM4oOSO80rWcRFCaW70dMb
pVRnUH4++iyQCirIbnOIChBk2U+gK3pJ2EfGPjnsB4D3uyEr9VPFa2W3`;

const CERTIFICATE = `
MIIBZjCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABERItYidBUzig5I7
zStZxEUJpbvR0xulVGdQfj76LJAKKshuc4gKEGTZT6AreknYR8Y+OewHgPe7ISv1
U8VrZbejTjBMMBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAPBgNVHRMBAf8E
BTADAQH/MB0GA1UdDgQWBBQWR7oZg+LvN20zaXVrB44CiBdCojAKBggqhkjOPQQD
AgNHADBEAiA0yXuGAmLdIjFG72Ib+r5wI+WAtzbr9bH4EjQ+F5/ACgIgX+wZ+eAG
oA3fHTIWVLU9RpQylOQ6VwfNxNmFedPVMUU=`;

/** For localhost and 127.0.0.1, in the format of node:tls. */
export const key: string = pem("PRIVATE KEY", KEY);
export const cert: string = pem("CERTIFICATE", CERTIFICATE);

function pem(what: string, text: string): string {
  return `-----BEGIN ${what}-----${text}\n-----END ${what}-----\n`;
}
