import dns from 'node:dns/promises';
import net from 'node:net';
import type { buildConnector } from 'undici';
import type { Network } from '../config.ts';
import { DocumentError } from '../documents/document-error.ts';
import { isPublicAddress } from '../documents/public-address.ts';
import { ownAddresses } from './own-addresses.ts';
import { paceSocket } from './paced-socket.ts';

/** Resolves a host name to its addresses, public or not. It rejects with a system error if there are none. */
export type ResolveHost = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Connects to one of the IP addresses in `addresses` and to no other, whatever host `options` names. The socket or the
 * error is passed to `callback`.
 */
export type ConnectTo = (
  addresses: readonly string[],
  options: buildConnector.Options,
  callback: buildConnector.Callback,
) => void | Promise<void>;

interface GuardOptions {
  readonly resolve: ResolveHost;
  readonly connect: ConnectTo;
  /** Networks to which no connection is opened, besides those that are not public, unless `allowed` has the address. */
  readonly denied: readonly Network[];
  /** Networks to which connections are opened although they are not public or are denied; none if left out. */
  readonly allowed?: readonly Network[];
  /** Whether connections are opened only to networks in `allowed`; false if left out. */
  readonly onlyAllowed?: boolean;
  /** Greatest number of bytes of a body; if left out, any number of bytes may arrive over a connection. */
  readonly maxBytes?: number;
  readonly signal: AbortSignal;
}

/**
 * Greatest number of addresses of a host, of each family, that are looked at. A DNS server may name four thousand of
 * them in one answer, and each is checked and, until one answers, connected to.
 */
const MOST_OF_FAMILY = 8;

/**
 * Number of bytes that a connection may bring beside twice the greatest body: its heads, and the frames of a body that
 * comes in chunks.
 */
const EXTRA_BYTES = 1024 * 1024;

/**
 * Creates a connector for undici that resolves a host name, checks the addresses and connects to one of them in one
 * step, so that the name is not resolved a second time with another result. Every error is passed to undici's callback,
 * because undici would otherwise wait forever. `signal` ends the wait for the resolver, even if the resolver ignores
 * it. With `maxBytes`, a connection fails with `SentTooMuch` once it has brought more than twice that and 1 MiB.
 */
export function guardedConnector({ connect, maxBytes, ...guards }: GuardOptions): buildConnector.connector {
  const { signal } = guards;
  return (options, reply) => {
    const callback: buildConnector.Callback = (...result) => {
      if (result[0] === null) paceSocket(result[1], maxBytes === undefined ? undefined : 2 * maxBytes + EXTRA_BYTES);
      reply(...result);
    };
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    Promise.race([allowedAddressesOf(host, guards), aborted])
      .then((addresses) => connect(addresses, options, callback))
      .catch((error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null));
  };
}

/**
 * Returns the addresses of a host to which connections are allowed: its addresses in `allowed` networks if it has any;
 * else, unless `onlyAllowed` is set, its public addresses that are neither this machine's own nor denied.
 * @param host a name, or an address without the brackets of IPv6
 * @throws DocumentError `fetch_refused` if there are none
 */
async function allowedAddressesOf(
  host: string,
  { resolve, denied, allowed: stated = [], onlyAllowed = false, signal }: Omit<GuardOptions, 'connect' | 'maxBytes'>,
): Promise<readonly string[]> {
  const addresses = net.isIP(host) === 0 ? firstOfEach(await resolve(host, signal)) : [host];
  const named = addresses.filter((address) => isAmong(address, stated));
  if (named.length > 0 || onlyAllowed) return requireSome(named);
  const own = ownAddresses();
  const publicAddresses = addresses.filter(
    (address) => isPublicAddress(address) && !own.check(address, net.isIPv6(address) ? 'ipv6' : 'ipv4'),
  );
  const allowed = publicAddresses.filter((address) => !isAmong(address, denied));
  if (allowed.length > 0) return allowed;
  throw new DocumentError(
    'fetch_refused',
    publicAddresses.length > 0
      ? 'its host is in a network that pages are not fetched from here (OM_FETCH_DENY)'
      : 'its host has no public address; pages are fetched only from public addresses',
  );
}

/** Returns the first 8 addresses (`MOST_OF_FAMILY`) of each family, IPv4 and IPv6, in their order. */
function firstOfEach(addresses: readonly string[]): readonly string[] {
  const left = { 4: MOST_OF_FAMILY, 6: MOST_OF_FAMILY };
  return addresses.filter((address) => left[net.isIPv6(address) ? 6 : 4]-- > 0);
}

function requireSome(addresses: readonly string[]): readonly string[] {
  if (addresses.length > 0) return addresses;
  throw new DocumentError('fetch_refused', 'its host has no address in the networks that are allowed here');
}

/** Tells whether an address is in one of `networks`. An IPv4 address is never in an IPv6 network. */
export function isAmong(address: string, networks: readonly Network[]): boolean {
  const family = net.isIPv6(address) ? 'ipv6' : 'ipv4';
  let lists = listsOf.get(networks);
  if (lists === undefined) listsOf.set(networks, (lists = createLists(networks)));
  return lists[family].check(address, family);
}

/**
 * Cache of what `isAmong` makes of a list of networks: one `BlockList` for each family of addresses. The lists come
 * from the settings, so they are few.
 */
const listsOf = new WeakMap<readonly Network[], Readonly<Record<Network['family'], net.BlockList>>>();

function createLists(networks: readonly Network[]): Readonly<Record<Network['family'], net.BlockList>> {
  const lists = { ipv4: new net.BlockList(), ipv6: new net.BlockList() };
  for (const { address, prefix, family } of networks) lists[family].addSubnet(address, prefix, family);
  return lists;
}

/**
 * Resolves a host name by the DNS alone, to IPv4 and IPv6 addresses. The machine's hosts file and search domains are
 * not used. The system's resolver is avoided, since a slow DNS server would block the few threads that it shares with
 * file access.
 * @throws the DNS error if the name has no address; the abort reason of `signal`
 */
export async function resolveByDns(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new dns.Resolver();
  const cancel = () => resolver.cancel();
  signal.throwIfAborted();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
    return addresses;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/**
 * Connects to the first of `addresses` (IPv4 or IPv6) that answers. The socket or the error is passed to `callback`.
 */
export async function connectToAddress(
  addresses: readonly string[],
  options: buildConnector.Options,
  callback: buildConnector.Callback,
): Promise<void> {
  const { buildConnector } = await import('undici');
  const checked = addresses.map((address) => ({ address, family: net.isIP(address) }));
  const connect = buildConnector({
    allowH2: false,
    autoSelectFamily: true,
    // `lookup` is called for names only; a connection to an address needs none.
    lookup: (_hostname, { all }, reply) =>
      all ? reply(null, checked) : reply(null, checked[0]!.address, checked[0]!.family),
  });
  connect(options, callback);
}
