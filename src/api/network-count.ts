/**
 * Counts something of which this process can hold only a bounded amount, such as waiting bytes, for each network of
 * clients and in all.
 */
export interface NetworkCount {
  /**
   * Adds an amount to the counts of a network and of all; a negative one takes it off. It is counted even if it is too
   * much.
   * @returns true if neither count is now over its bound
   */
  add(network: string, amount: number): boolean;
}

/**
 * Makes a count whose bounds are the greatest amounts of one network (an IPv4 address, or an IPv6 prefix) and of all
 * together.
 */
export function createNetworkCount(most: { readonly ofNetwork: number; readonly ofAll: number }): NetworkCount {
  const ofNetworks = new Map<string, number>();
  let ofAll = 0;
  return {
    add(network, amount) {
      const ofNetwork = (ofNetworks.get(network) ?? 0) + amount;
      ofAll += amount;
      if (ofNetwork === 0) ofNetworks.delete(network);
      else ofNetworks.set(network, ofNetwork);
      return ofNetwork <= most.ofNetwork && ofAll <= most.ofAll;
    },
  };
}
