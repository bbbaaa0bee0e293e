/** SHA-256 by the browser, as hex digits; undefined where it computes none: on pages of plain HTTP from elsewhere. */
export async function sha256(...parts: readonly (string | Uint8Array<ArrayBuffer>)[]): Promise<string | undefined> {
  const { subtle } = crypto as { readonly subtle?: SubtleCrypto };
  if (subtle === undefined) return undefined;
  const digest = await subtle.digest('SHA-256', await new Blob([...parts]).arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Reads bytes from hexadecimal digits, two a byte. */
export function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
