/**
 * Creates a `fetch` that resolves once it has the whole body. So a time limit also covers the body of an error, and a
 * reply that never ends takes at most `maxBytes`, counted after decompression. Redirects are not followed: texts and
 * keys go to the configured host only.
 * @param refused creates the error with which the `fetch` rejects for a longer reply; `what` follows the words "the
 *   reply"
 */
export function boundedFetch(maxBytes: number, refused: (what: string) => Error): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: 'manual' });
    const parts: Uint8Array[] = [];
    let bytes = 0;
    // To leave the loop early cancels the body, which closes the connection.
    for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += part.byteLength;
      if (bytes > maxBytes) throw refused(`is longer than ${maxBytes} bytes`);
      parts.push(part);
    }
    const { status, statusText, headers } = response;
    return new Response(bytes === 0 ? null : Buffer.concat(parts), { status, statusText, headers });
  };
}
