import net from 'node:net';

/**
 * Tells whether an IP address belongs to the public internet, by IANA's special-purpose registries (RFC 6890). An IPv6
 * address is public only if it is global unicast (2000::/3) and not in a reserved block. That excludes every IPv6 form
 * that embeds an IPv4 address and could so avoid the check of IPv4 addresses: mapped, compatible, NAT64, 6to4 and
 * Teredo. A public host has an IPv4 address of its own, so nothing is lost.
 * @param address IPv4 or IPv6 address as a resolver returns it; text that is not an address, such as a host name, or
 *   that names a zone (`%eth0`) is not public
 */
export function isPublicAddress(address: string): boolean {
  switch (address.includes('%') ? 0 : net.isIP(address)) {
    case 4:
      return !SPECIAL_IPV4.check(address, 'ipv4');
    case 6:
      return GLOBAL_UNICAST.check(address, 'ipv6') && !SPECIAL_IPV6.check(address, 'ipv6');
    default:
      return false;
  }
}

const SPECIAL_IPV4 = subnets('ipv4', [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared by a carrier's customers; also metadata of some clouds
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // the host of a virtual machine on Azure
  '169.254.0.0/16', // link-local; metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]);

const GLOBAL_UNICAST = subnets('ipv6', ['2000::/3']);

const SPECIAL_IPV6 = subnets('ipv6', [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
]);

// A list for each family: a list with ::ffff:0:0/96 in it would match every IPv4 address.
function subnets(family: 'ipv4' | 'ipv6', blocks: readonly string[]): net.BlockList {
  const list = new net.BlockList();
  for (const block of blocks) {
    const [network, prefix] = block.split('/') as [string, string];
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}
