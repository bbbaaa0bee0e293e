/** Number of 16-bit groups of an IPv6 address that name its network, a /64, in which a client can take any address. */
const NETWORK_GROUPS = 4;

/**
 * Returns the name under which callers of one network are counted together: an IPv4 address itself, also one that is
 * written as `::ffff:…`, or the first four groups of an IPv6 address, without abbreviation. So a client gains nothing
 * by changing its address within its network. Any other text is returned unchanged.
 */
export function networkOf(address: string): string {
  const isVersion4 = address.includes('.');
  if (isVersion4 || !address.includes(':')) return address.replace(/^::ffff:/i, '');
  const [start = '', end] = address.split('::');
  const groups = start === '' ? [] : start.split(':');
  const ending = end === undefined || end === '' ? [] : end.split(':');
  const zeros = end === undefined ? 0 : 8 - groups.length - ending.length;
  return [...groups, ...Array<string>(zeros).fill('0'), ...ending].slice(0, NETWORK_GROUPS).join(':');
}
