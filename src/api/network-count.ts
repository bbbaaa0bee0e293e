/** Counts what takes room in this process, for each network of clients and in all. */
export interface NetworkCount {
  /** Counts more of a network, fewer if `amount` is negative; returns whether there is no more than there may be. */
  add(network: string, amount: number): boolean;
}

/** Makes a count with the greatest amounts of one network (an IPv4 address, or an IPv6 prefix) and of all together. */
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
