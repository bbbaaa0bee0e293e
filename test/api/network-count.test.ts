import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createNetworkCount } from '../../src/api/network-count.ts';

const MIB = 1024 * 1024;
const PROXY = '203.0.113.7';

/** Makes a count, and returns a function that opens a connection from an address, which the count may close. */
function start() {
  const count = createNetworkCount({
    ofNetwork: 64 * MIB,
    ofAll: 160 * MIB,
    isProxy: (address) => address === PROXY,
  });
  return (remoteAddress: string) => {
    const socket = { remoteAddress, destroyed: false, destroy: () => void (socket.destroyed = true) };
    const take = count.enter(socket as unknown as Socket);
    return { take: (mib: number) => take(mib * MIB), isOpen: () => !socket.destroyed };
  };
}

test('where a network takes too much, its newest connection is closed, until something is given back', () => {
  const connect = start();
  const [old, newest] = [connect('198.51.100.1'), connect('198.51.100.1')];
  old.take(40);
  newest.take(24);
  old.take(41);
  expect([old.isOpen(), newest.isOpen()]).toEqual([true, false]);
  newest.take(0);
  old.take(0);
  const next = connect('198.51.100.1');
  next.take(64);
  expect(next.isOpen()).toBe(true);
});

test('where all take too much, connections of the network with the most are closed, and no newcomer', () => {
  const connect = start();
  const floods = ['198.51.100.1', '198.51.100.2', '198.51.100.3'].map((address, no) =>
    Array.from({ length: 10 }, () => {
      const connection = connect(address);
      connection.take(no < 2 ? 6 : 4);
      return connection;
    }),
  );
  const newcomer = connect('198.51.100.4');
  newcomer.take(1);
  newcomer.take(5);
  expect(newcomer.isOpen()).toBe(true);
  const open = floods.map((flood) => flood.map(({ isOpen }) => isOpen()));
  const all = Array<boolean>(9).fill(true);
  expect(open).toEqual([
    [...all, false],
    [...all, true],
    [...all, true],
  ]);
});

test('a trusted proxy may take what all may, and its newest connection is closed if it takes the most', () => {
  const connect = start();
  const [old, newest] = [connect(PROXY), connect(PROXY)];
  old.take(100);
  newest.take(60);
  expect(newest.isOpen()).toBe(true);
  const other = connect('198.51.100.1');
  other.take(1);
  expect([old.isOpen(), newest.isOpen(), other.isOpen()]).toEqual([true, false, true]);
});
