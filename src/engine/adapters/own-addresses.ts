import net from 'node:net';
import os from 'node:os';

/**
 * Returns the present addresses of this machine's own network interfaces, to which callers must not make the server
 * connect: a firewall may close a service here to the network, but not to connections from this machine itself.
 */
export function ownAddresses(): net.BlockList {
  const list = new net.BlockList();
  for (const { address, family } of Object.values(os.networkInterfaces()).flatMap((addresses) => addresses ?? [])) {
    list.addAddress(address.replace(/%.*$/, ''), family === 'IPv6' ? 'ipv6' : 'ipv4');
  }
  return list;
}
