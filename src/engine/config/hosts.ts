/**
 * Whether an address to listen on is one that only this machine can reach: `localhost`, `::1` (with or without
 * brackets) or 127.x.x.x. Any other name counts as reachable by others, even if it resolves to one of these.
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether nobody between this process and the server of a URL can change what the server says: the URL begins with
 * https, or with http and a loopback host. False for a malformed URL, or one with a user name or password.
 */
export function isTamperProofUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}
