import { expect, test } from 'vitest';
import { decodeReceipt, encodeReceipt, spanningReceipt } from '../../src/engine/commands/write-receipt.ts';

const STORE = '0123abcd';
const receipt = (first: number, last: number) => encodeReceipt({ storeId: STORE, first, last });

test('the receipt of a batch covers all its writes, whichever job each of them names', () => {
  // An unchanged document answers with the job that still reads it, which is older than those of the documents before
  // it.
  for (const writes of [
    [receipt(8, 9), receipt(3, 3), receipt(10, 12)],
    [receipt(3, 3), receipt(10, 12), receipt(8, 9)],
    [null, receipt(10, 12), null, receipt(3, 3)],
  ]) {
    const token = writes.reduce(spanningReceipt, null);
    expect(decodeReceipt(token!, STORE)).toEqual({ storeId: STORE, first: 3, last: 12 });
  }
  expect(spanningReceipt(null, null)).toBeNull();
});
