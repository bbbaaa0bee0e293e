/** Groups of an IPv6 address that its network has: a client can take any address of its /64. */
const NETWORK_GROUPS = 4;

/** The address, or of an IPv6 address its first four groups. */
export function networkOf(address: string): string {
  const isVersion4 = address.includes('.');
  if (isVersion4 || !address.includes(':')) return address.replace(/^::ffff:/i, '');
  const [start = '', end] = address.split('::');
  const groups = start === '' ? [] : start.split(':');
  const ending = end === undefined || end === '' ? [] : end.split(':');
  const zeros = end === undefined ? 0 : 8 - groups.length - ending.length;
  return [...groups, ...Array<string>(zeros).fill('0'), ...ending].slice(0, NETWORK_GROUPS).join(':');
}
