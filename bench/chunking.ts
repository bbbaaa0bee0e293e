/**
 * Speed of cutting documents: MB/s (of UTF-8) and tokens/s on the project's own docs, beside the bare tokenizer as the
 * baseline, and on texts whose shape makes careless code quadratic, each at two lengths. `doubling` is the ratio of
 * their times; it means nothing below a few milliseconds.
 *
 *     npm run measure -- chunking [CHARACTERS]
 *
 * The default is 500,000 characters.
 */
import fs from 'node:fs';
import { chunkText } from '../src/engine/documents/chunk-text.ts';
import { loadTokenCounter } from '../src/engine/documents/count-tokens.ts';
import { outlineOf } from '../src/engine/documents/outline.ts';
import type { TextKind } from '../src/engine/documents/parsed-document.ts';
import { HOSTILE_MARKDOWN } from '../test/engine/documents/hostile-markdown.ts';
import { HOSTILE_SHAPES } from '../test/engine/text/hostile-shapes.ts';
import { report } from './report.ts';

const countTokens = await loadTokenCounter();
const length = Number(process.argv[2] ?? 500_000);

const docs = new URL('../docs/', import.meta.url);
const names = fs.readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
const markdown = names
  .map((name) => fs.readFileSync(new URL(name, docs), 'utf8'))
  .join('\n\n')
  .repeat(8);
const megabytes = Buffer.byteLength(markdown) / 1e6;

const chunks = cut(markdown, 'markdown');
const tokens = chunks.reduce((sum, chunk) => sum + chunk.tokens, 0);
const ms = bestOf(() => cut(markdown, 'markdown'));
const floorMs = bestOf(() => countTokens(markdown));
report('chunking-markdown-mb-per-s', megabytes / (ms / 1000), { ms, megabytes, chunks: chunks.length });
report('chunking-tokens-per-s', tokens / (ms / 1000), { tokens, 'tokens-per-chunk': tokens / chunks.length });
report('chunking-of-bare-tokenizer', ms / floorMs, { 'tokenizer-ms': floorMs });
report('outline-mb-per-s', megabytes / (bestOf(() => outlineOf(markdown, 'markdown')) / 1000));

for (const [shape, make] of Object.entries({ ...HOSTILE_SHAPES, ...HOSTILE_MARKDOWN })) {
  const [once, twice] = [make(length), make(2 * length)];
  const [onceMs, twiceMs] = [bestOf(() => cut(once, 'markdown')), bestOf(() => cut(twice, 'markdown'))];
  report('chunking-hostile-ms-per-mb', twiceMs / (Buffer.byteLength(twice) / 1e6), {
    shape,
    ms: twiceMs,
    doubling: twiceMs / onceMs,
  });
}

function cut(text: string, kind: TextKind) {
  return chunkText(text, { sizeTokens: 2_048, overlapTokens: 256, kind, pages: [], countTokens });
}

/** CPU time of a call, ms, which other processes affect least; the better of two runs, as the first also compiles. */
function bestOf(run: () => unknown): number {
  const times = [0, 1].map(() => {
    const start = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}
