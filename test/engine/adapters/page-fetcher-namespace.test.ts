import { execFile, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { PRIVATE_NAMES, PUBLIC_ADDRESS, REFUSED_URLS } from '../../support/private-urls.ts';
import { tempFolder } from '../../support/temp-folder.ts';

interface Report {
  /** The private addresses on which a plain connection was noticed: what shows that the listeners hear. */
  readonly controlled: readonly string[];
  readonly outcomes: Readonly<Record<string, string>>;
  readonly received: Readonly<Record<string, readonly string[]>>;
}

const MAIN = path.resolve(import.meta.dirname, '../../support/page-namespace-main.ts');
/** Every address of both families leads to this network's only process. */
const SET_UP = [
  'ip link set lo up',
  'ip route add local 0.0.0.0/0 dev lo',
  'ip -6 route add local ::/0 dev lo',
  'mount --bind "$0" /etc/resolv.conf',
].join(' && ');
const inNamespace = (script: string, ...values: string[]) => ['-n', '-m', 'sh', '-c', script, ...values];

const folder = tempFolder();
const resolverFile = path.join(folder, 'resolv.conf');
fs.writeFileSync(resolverFile, 'nameserver 127.0.0.53\n');
const isPossible = spawnSync('unshare', inNamespace(SET_UP, resolverFile)).status === 0;
if (!isPossible) console.log('skipped: private networks need root, unshare and ip (util-linux, iproute2)');

describe.skipIf(!isPossible)('in a network where every address answers', () => {
  let report: Report;

  beforeAll(async () => {
    const run = `${SET_UP} && exec "$1" "$2"`;
    const { stdout } = await promisify(execFile)('unshare', inNamespace(run, resolverFile, process.execPath, MAIN));
    report = JSON.parse(stdout) as Report;
  });

  test('the listeners hear a plain connection', () => {
    expect(report.controlled).toEqual(
      ['10.0.0.1', '127.0.0.1', '169.254.169.254', '203.0.113.10', '2002:7f00:1::', '::1', 'fd00::1'].sort(),
    );
  });

  test('nothing reaches any address but the public one', () => {
    expect(Object.keys(report.received)).toEqual([PUBLIC_ADDRESS]);
  });

  test(`${REFUSED_URLS.length} URLs are refused`, () => {
    expect(REFUSED_URLS.length).toBeGreaterThan(60);
    const others = REFUSED_URLS.filter((url) => report.outcomes[url] !== 'fetch_refused');
    expect(others).toEqual([]);
  });

  test('names of this machine lead nowhere', () => {
    const outcomes = PRIVATE_NAMES.map((name) => report.outcomes[`http://${name}/`]);
    expect(outcomes.filter((outcome) => !/^fetch_(refused|failed)$/.test(outcome!))).toEqual([]);
  });

  test.each(['ten', 'loopback', 'metadata', 'six', 'mapped', 'nat64', 'alias'])(
    'a name with nothing but private addresses is refused: %s',
    (name) => expect(report.outcomes[`http://${name}.example/`]).toBe('fetch_refused'),
  );

  test('of several addresses only the public one is connected to', () => {
    expect(report.outcomes['http://mixed.example/']).toBe('page');
    expect(report.outcomes['http://public.example/']).toBe('page');
  });

  test('the address that was checked is the one that is connected to, though the next answer is another', () => {
    expect(report.outcomes['http://rebinding.example/first']).toBe('page');
    expect(report.outcomes['http://rebinding.example/second']).toBe('fetch_refused');
    expect(report.outcomes['http://flipping.example/first']).toBe('fetch_refused');
  });

  test('every hop of a redirect is checked like the first', () => {
    const redirected = Object.entries(report.outcomes).filter(([url]) => url.includes('/to?'));
    expect(redirected).toHaveLength(11);
    const [allowed, refused] = [redirected.slice(-1), redirected.slice(0, -1)];
    expect(allowed.map(([, outcome]) => outcome)).toEqual(['page']);
    expect(refused.filter(([, outcome]) => outcome !== 'fetch_refused')).toEqual([]);
  });

  test('a request carries no credentials, no cookies and nothing about us but the name', () => {
    const requests = report.received[PUBLIC_ADDRESS]!;
    expect(requests.length).toBeGreaterThan(10);
    const names = requests.flatMap((request) =>
      request
        .trimEnd()
        .split('\r\n')
        .slice(1)
        .map((line) => line.split(':')[0]!.toLowerCase()),
    );
    expect([...new Set(names)].sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  });
});
