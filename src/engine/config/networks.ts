import net from 'node:net';

/**
 * A network of one family: all IP addresses whose first `prefix` bits (0..32, or 0..128 for IPv6) are those of
 * `address`.
 */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** Greatest number of networks in one list. Each is compared with each address that is connected to. */
const MAX_NETWORKS = 1_000;

/**
 * Parses networks in CIDR notation, comma-separated, such as `198.51.100.0/24, 64:ff9b:1::/48`; an address alone is a
 * network of one address.
 * @returns the networks, none for a blank text; undefined if the text holds anything else, or more than a thousand
 */
export function parseNetworks(text: string): readonly Network[] | undefined {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const networks = entries.map(parseNetwork).filter((network) => network !== undefined);
  return networks.length === entries.length && entries.length <= MAX_NETWORKS ? networks : undefined;
}

function parseNetwork(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/');
  const version = address.includes('%') ? 0 : net.isIP(address);
  const mostBits = version === 4 ? 32 : 128;
  const isPrefix = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= mostBits);
  if (version === 0 || rest.length > 0 || !isPrefix) return undefined;
  return { address, prefix: Number(bits ?? mostBits), family: version === 4 ? 'ipv4' : 'ipv6' };
}
