import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';

/** Finds the address that a request comes from; '' if its connection has ended. */
export type ClientAddressOf = (request: IncomingMessage) => string;

/**
 * Makes the function that finds a client's address. It is the address of the connection or, if that is a trusted
 * proxy's, the last entry of `X-Forwarded-For` that is not a trusted proxy's address, without its port. If there is no
 * such entry, or it is no address (`unknown`), it is the address of the connection. Entries further left are not
 * believed, since a client can write them itself.
 * @param trusted addresses and networks (`10.0.0.0/8`) of proxies, as `OM_TRUSTED_PROXIES` lists them
 */
export function clientAddresses(trusted: readonly string[]): ClientAddressOf {
  const isProxy = proxyCheck(trusted);
  return (request) => {
    const own = plain(request.socket.remoteAddress ?? '');
    if (!isProxy(own)) return own;
    const forwarded = (request.headersDistinct['x-forwarded-for'] ?? []).join(',').split(',');
    const last = forwarded.map((entry) => plain(withoutPort(entry.trim()))).findLast((entry) => !isProxy(entry)) ?? '';
    return isIP(last) === 0 ? own : last;
  };
}

/** Makes the function that tells whether an address is that of a trusted proxy. */
export function proxyCheck(trusted: readonly string[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const entry of trusted) {
    const [address, bits] = entry.split('/') as [string, string?];
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) proxies.addAddress(address, family);
    else proxies.addSubnet(address, Number(bits), family);
  }
  return (address) => {
    const own = plain(address);
    return isIP(own) !== 0 && proxies.check(own, isIPv6(own) ? 'ipv6' : 'ipv4');
  };
}

/** Takes the port off `203.0.113.9:52311` or `[2001:db8::1]:52311`, and the brackets off an address without a port. */
function withoutPort(entry: string): string {
  const [, v6, v4] = /^(?:\[([^\]]*)\]|(\d+(?:\.\d+){3}))(?::\d{1,5})?$/.exec(entry) ?? [];
  return v6 ?? v4 ?? entry;
}

/**
 * Turns an IPv4 address like `::ffff:127.0.0.1`, as a socket that listens on both families reports it, into
 * `127.0.0.1`.
 */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
