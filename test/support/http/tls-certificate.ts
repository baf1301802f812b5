// Self-signed certificates for localhost and upstream.test, valid until 2120, for tests that need TLS. Their keys are
// public.

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

const UPSTREAM_KEY = `
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNLioWdSEMND4CJlx
1s+VTpV2/zx6znkNSOuRuKx/kwqhRANCAASV1/5cluCOz4TNStpbtTd/Ke21wxcO
PF1T6ino7Bfk4PYTUkoHUGkhwbU1/NhGzmY1yeuXPRD2ZcNZ0/Vxvaqx`;

const UPSTREAM_CERTIFICATE = `
MIIBTjCB9KADAgECAgECMAoGCCqGSM49BAMCMBgxFjAUBgNVBAMMDXVwc3RyZWFt
LnRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBgxFjAUBgNV
BAMMDXVwc3RyZWFtLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASV1/5c
luCOz4TNStpbtTd/Ke21wxcOPF1T6ino7Bfk4PYTUkoHUGkhwbU1/NhGzmY1yeuX
PRD2ZcNZ0/Vxvaqxoy0wKzAYBgNVHREEETAPgg11cHN0cmVhbS50ZXN0MA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAPD8wLviF4A3LuCkt9iMfAB7
T9tU4iuKqw6rklqvTesKAiEAngXQWxsZ6VWiLI3GRUNHkLvNUVWFh3ygKEVHCr4z
kYc=`;

/** For localhost and 127.0.0.1, in the format of node:tls. */
export const key: string = pem("PRIVATE KEY", KEY);
export const cert: string = pem("CERTIFICATE", CERTIFICATE);

/** For upstream.test, a name that only a proxy of a test resolves. */
export const upstreamKey: string = pem("PRIVATE KEY", UPSTREAM_KEY);
export const upstreamCert: string = pem("CERTIFICATE", UPSTREAM_CERTIFICATE);

function pem(what: string, text: string): string {
  return `-----BEGIN ${what}-----${text}\n-----END ${what}-----\n`;
}
