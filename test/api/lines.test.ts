import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { groupsOf, type Line, linesOf } from '../../src/api/lines.ts';
import { turnsDuring } from '../support/turns-during.ts';

async function read(chunks: readonly Buffer[], maxBytes = 1024): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const batch of linesOf(Readable.from(chunks, { objectMode: false }), { maxBytes })) lines.push(...batch);
  return lines;
}

/** Cuts bytes anywhere, also inside a character. */
function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((part) => Math.floor(part * bytes.length)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

describe('lines', () => {
  test('are the same however the stream was cut', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'binary' }).filter((line) => !line.includes('\n'))),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }),
        async (texts, cuts) => {
          const whole = await read([Buffer.from(texts.join('\n'))]);
          const expected = texts
            .map((line, index) => ({ number: index + 1, bytes: Buffer.from(line) }))
            .filter(({ bytes }) => !bytes.every((byte) => byte === 32 || byte === 13));
          expect(whole).toEqual(expected);
          expect(await read(cut(Buffer.from(texts.join('\n')), cuts))).toEqual(whole);
        },
      ),
    ));

  test('blank ones are counted and left out', async () => {
    const lines = await read([Buffer.from('a\n\r\n  \nb\n')]);
    expect(lines.map(({ number, bytes }) => [number, bytes?.toString()])).toEqual([
      [1, 'a'],
      [4, 'b'],
    ]);
  });

  test('one over the limit is named and spares the others, wherever it was cut', async () => {
    const text = Buffer.from(`${'a'.repeat(10)}\n${'b'.repeat(11)}\nc\n${'d'.repeat(30)}`);
    for (const size of [1, 3, 11, 100]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
        text.subarray(index * size, (index + 1) * size),
      );
      const lines = await read(chunks, 10);
      expect(lines.map(({ number, bytes }) => [number, bytes?.toString() ?? null])).toEqual([
        [1, 'a'.repeat(10)],
        [2, null],
        [3, 'c'],
        [4, null],
      ]);
    }
  });

  test('an upload that breaks off never yields its unfinished line', async () => {
    const broken = new Readable({ read() {} });
    broken.push('{"content":"whole"}\n{"content":"ha');
    const seen: (string | undefined)[] = [];
    const reading = (async () => {
      for await (const batch of linesOf(broken, { maxBytes: 100 })) {
        seen.push(...batch.map(({ bytes }) => bytes?.toString()));
        broken.destroy(new Error('aborted'));
      }
    })();
    await expect(reading).rejects.toThrow('aborted');
    expect(seen).toEqual(['{"content":"whole"}']);
  });

  describe('that arrive slowly', () => {
    const MIB = 1024 * 1024;

    /** Counts the lines of chunks that come with pauses of `pauseMs`, where each batch of lines takes `workMs`. */
    async function readSlowly(
      chunks: readonly string[],
      { pauseMs, workMs = 0, maxBytes = MIB }: { pauseMs: number; workMs?: number; maxBytes?: number },
    ): Promise<number> {
      let [time, sent, lines] = [0, 0, 0];
      const stream = new Readable({
        highWaterMark: 1,
        read() {
          setImmediate(() => {
            time += pauseMs;
            this.push(chunks[sent++] ?? null);
          });
        },
      });
      for await (const batch of linesOf(stream, { maxBytes, hold: () => {}, now: () => time })) {
        time += workMs;
        lines += batch.length;
      }
      return lines;
    }
    const drips = ['x'.repeat(80 * 1024), ...'xxxxx'];

    test('are given up while over 64 KiB of one wait for their rest', async () => {
      await expect(readSlowly(['a\n', ...drips], { pauseMs: 10_000 })).rejects.toMatchObject({
        code: 'invalid',
        message: /^line 2 did not arrive within 25 s/,
      });
    });

    test('have more time where they may be longer, and any while little of them waits', async () => {
      expect(await readSlowly([...drips, '\n'], { pauseMs: 10_000, maxBytes: 4 * MIB })).toBe(1);
      expect(await readSlowly(['{"content":', '"a"', '}\n', '{}'], { pauseMs: 3_600_000 })).toBe(2);
      expect(await readSlowly(Array(9).fill(`${'x'.repeat(80 * 1024)}\n`), { pauseMs: 20_000 })).toBe(9);
    });

    test('count no time before their first byte', async () => {
      const long = 'x'.repeat(80 * 1024);
      expect(await readSlowly(['a\n', long, 'x\n', `b\n${long}`, '\n'], { pauseMs: 20_000 })).toBe(4);
    });

    test('count no time in which the server did not read', async () => {
      const halves = Array.from({ length: 8 }, () => `\n${'x'.repeat(80 * 1024)}`);
      expect(await readSlowly(halves, { pauseMs: 10, workMs: 30_000 })).toBe(8);
    });
  });

  test('that stop arriving end the stream; the time that the caller takes for lines is no silence', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const stream = new Readable({ read() {} });
    const batches = linesOf(stream, { maxBytes: 10, idleMs: 1_000 });
    for (const line of ['a', 'b']) {
      const next = batches.next();
      await vi.advanceTimersByTimeAsync(999);
      stream.push(`${line}\n`);
      expect((await next).value).toMatchObject([{ bytes: Buffer.from(line) }]);
      await vi.advanceTimersByTimeAsync(5_000);
    }
    const cut = expect(batches.next()).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' });
    await vi.advanceTimersByTimeAsync(1_000);
    await cut;
    expect([stream.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
  });

  test('that are all there at once leave turns to others', async () => {
    const stream = Readable.from([Buffer.from('x\n'.repeat(400))]);
    let turns = 0;
    const count = () => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    let groups = 0;
    for await (const group of groupsOf(linesOf(stream, { maxBytes: 10 }), 10)) {
      groups += group.length / 10;
      // Work that waits for nothing, as that on lines that are all refused.
      for (const end = performance.now() + 3; performance.now() < end;);
    }
    clearImmediate(next);
    expect(groups).toBe(40);
    expect(turns).toBeGreaterThan(30);
  });

  test('that are short are yielded in small numbers, as parts of what arrived', async () => {
    const chunk = Buffer.from('1\n'.repeat(30_000));
    let lines = 0;
    for await (const batch of linesOf(Readable.from([chunk]), { maxBytes: 10 })) {
      expect(batch.length).toBeLessThanOrEqual(256);
      expect(batch.every(({ bytes }) => bytes?.buffer === chunk.buffer)).toBe(true);
      lines += batch.length;
    }
    expect(lines).toBe(30_000);
  });

  test('that are blank leave turns to others, too', async () => {
    const stream = Readable.from([Buffer.from(' \r\n\n'.repeat(32_000))]);
    const turns = await turnsDuring(async () => {
      for await (const batch of linesOf(stream, { maxBytes: 10 })) expect(batch).toEqual([]);
    });
    expect(turns).toBeGreaterThan(200);
  });

  test('of an upload may not be blank without end', async () => {
    const blank = Buffer.from('\n'.repeat(50_000));
    const read = async (chunks: readonly Buffer[], hold?: () => void) => {
      let lines = 0;
      for await (const batch of linesOf(Readable.from(chunks), { maxBytes: 10, ...(hold && { hold }) }))
        lines += batch.length;
      return lines;
    };
    const line = Buffer.from('x\n');
    await expect(read([line, blank, blank, line, blank, blank, line], () => {})).resolves.toBe(3);
    await expect(read([line, blank, blank, blank, line], () => {})).rejects.toMatchObject({
      code: 'invalid',
      message: /^line 100002 is one of over 100000 blank lines in a row/,
    });
    await expect(read([line, blank, blank, blank, line])).resolves.toBe(2);
  });
});
