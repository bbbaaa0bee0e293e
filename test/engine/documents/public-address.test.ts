import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../src/engine/documents/public-address.ts';

const octet = fc.integer({ min: 0, max: 255 });
const ipv4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'));
const group = fc.integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
const groups = (length: number) => fc.array(group, { minLength: length, maxLength: length });

describe('isPublicAddress', () => {
  test.each(['1.1.1.1', '8.8.8.8', '93.184.216.34', '100.63.255.255', '100.128.0.0', '172.15.255.255', '172.32.0.0'])(
    'passes %s',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  test.each(['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001::1', '2001:200::1', '3ffe::1'])(
    'passes %s',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  // The first and the last address of each block.
  test.each([
    ['0.0.0.0', '0.255.255.255'],
    ['10.0.0.0', '10.255.255.255'],
    ['100.64.0.0', '100.127.255.255'],
    ['127.0.0.0', '127.255.255.255'],
    ['168.63.129.16', '168.63.129.16'],
    ['169.254.0.0', '169.254.255.255'],
    ['172.16.0.0', '172.31.255.255'],
    ['192.0.0.0', '192.0.0.255'],
    ['192.0.2.0', '192.0.2.255'],
    ['192.88.99.0', '192.88.99.255'],
    ['192.168.0.0', '192.168.255.255'],
    ['198.18.0.0', '198.19.255.255'],
    ['198.51.100.0', '198.51.100.255'],
    ['203.0.113.0', '203.0.113.255'],
    ['224.0.0.0', '239.255.255.255'],
    ['240.0.0.0', '255.255.255.255'],
    ['::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['64:ff9b::', '64:ff9b::ffff:ffff'],
    ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
    ['100::', '100::ffff:ffff:ffff:ffff'],
    ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['ff00::', 'ff02::1'],
  ])('refuses %s to %s', (first, last) => {
    expect([first, last].filter(isPublicAddress)).toEqual([]);
  });

  test('an IPv4 address inside an IPv6 address is never public, whatever it is', () =>
    fc.assert(
      fc.property(ipv4, (address) => {
        const [a, b, c, d] = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'));
        const forms = [
          `::ffff:${address}`,
          `::ffff:${a}${b}:${c}${d}`,
          `::${address}`,
          `::ffff:0:${address}`,
          `64:ff9b::${address}`,
          `64:ff9b:1::${address}`,
          `2002:${a}${b}:${c}${d}::1`,
          `2001:0:${a}${b}:${c}${d}::1`,
        ];
        expect(forms.filter(isPublicAddress)).toEqual([]);
      }),
    ));

  test('no IPv6 address outside of 2000::/3 is public', () =>
    fc.assert(
      fc.property(groups(8), (all) => {
        fc.pre((Number.parseInt(all[0]!, 16) & 0xe000) !== 0x2000);
        expect(isPublicAddress(all.join(':'))).toBe(false);
      }),
    ));

  test('all spellings of an address are judged alike', () =>
    fc.assert(
      fc.property(groups(8), (all) => {
        const canonical = new URL(`http://[${all.join(':')}]/`).hostname.slice(1, -1);
        expect(isPublicAddress(all.map((part) => part.padStart(4, '0').toUpperCase()).join(':'))).toBe(
          isPublicAddress(canonical),
        );
      }),
    ));

  test.each([
    '',
    'localhost',
    '8.8.8',
    '8.8.8.8 ',
    '010.0.0.1',
    '134744072',
    '[2606::1]',
    '2606::1%lo',
    'fe80::1%eth0',
  ])('what is no plain address is not public: %j', (text) => expect(isPublicAddress(text)).toBe(false));
});
