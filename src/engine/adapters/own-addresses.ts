import net from 'node:net';
import os from 'node:os';

/**
 * Returns the addresses of this machine's own interfaces, as they are now. A service here may be closed to the network
 * by a firewall that does not see this machine's own connections.
 */
export function ownAddresses(): net.BlockList {
  const list = new net.BlockList();
  for (const { address, family } of Object.values(os.networkInterfaces()).flatMap((addresses) => addresses ?? [])) {
    list.addAddress(address.replace(/%.*$/, ''), family === 'IPv6' ? 'ipv6' : 'ipv4');
  }
  return list;
}
