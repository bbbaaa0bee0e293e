import type { Socket } from 'node:net';
import { networkOf } from '../engine/index.ts';

/** Counts what connections take of something of which this process can hold only a bounded amount, as waiting bytes. */
export interface NetworkCount {
  /**
   * Begins to count what a connection takes, which is nothing at first.
   * @returns a function that says how much the connection takes from now on. It may close connections, this one among
   *   them; a destroyed connection takes nothing. It must be called with 0 when the connection is destroyed
   */
  enter(socket: Socket): (amount: number) => void;
}

interface CountOptions {
  /** Greatest amount that the connections of one network (an IPv4 address, or an IPv6 prefix) take together. */
  readonly ofNetwork: number;
  /** Greatest amount that all connections take together. */
  readonly ofAll: number;
  /** Tells whether an address is that of a trusted proxy. */
  readonly isProxy: (address: string) => boolean;
}

/** What the connections of one network take. */
interface Taken {
  sum: number;
  /** Amount that each connection takes, more than 0; the one that began last to take something stands last. */
  readonly amounts: Map<Socket, number>;
}

/**
 * Makes a count that closes connections where too much is taken: of a network that takes more than one network may, and
 * of the network that takes the most while all take more than they may together. The connection that began last to take
 * something is closed first. So a network that takes little loses no connection because others take all there is.
 *
 * A trusted proxy is counted as one network, since a client behind it is not known before its request was parsed. As
 * such clients are many, it may take as much as all networks together, and its neighbours in the network count apart
 * from it. Once it is the one that takes the most, its newest connection is closed, whichever of its clients that
 * serves.
 */
export function createNetworkCount({ ofNetwork, ofAll, isProxy }: CountOptions): NetworkCount {
  /** What is taken, by network; a network that takes nothing is not in it. */
  const networks = new Map<string, Taken>();
  let total = 0;

  const set = (network: string, socket: Socket, amount: number) => {
    const taken = networks.get(network) ?? { sum: 0, amounts: new Map<Socket, number>() };
    const change = amount - (taken.amounts.get(socket) ?? 0);
    taken.sum += change;
    total += change;
    if (amount === 0) taken.amounts.delete(socket);
    else taken.amounts.set(socket, amount);
    if (taken.sum === 0) networks.delete(network);
    else networks.set(network, taken);
  };
  const closeNewest = (network: string) => {
    const newest = [...networks.get(network)!.amounts.keys()].at(-1)!;
    set(network, newest, 0);
    newest.destroy();
  };
  const largest = () => [...networks].reduce((most, other) => (other[1].sum > most[1].sum ? other : most))[0];

  return {
    enter(socket) {
      const { remoteAddress: address = '' } = socket;
      const isOfProxy = isProxy(address);
      const network = `${isOfProxy ? 'proxies of ' : ''}${networkOf(address)}`;
      const most = isOfProxy ? ofAll : ofNetwork;
      return (amount) => {
        set(network, socket, socket.destroyed ? 0 : amount);
        if (amount === 0) return;
        while ((networks.get(network)?.sum ?? 0) > most) closeNewest(network);
        while (total > ofAll) closeNewest(largest());
      };
    },
  };
}
