/**
 * Time of each text function, ms, for 0.5, 1 and 2 MB (of UTF-16 code units) of texts whose shape makes careless code
 * quadratic. `doubling` is the worse of the two ratios between sizes; it means nothing below a few milliseconds.
 */
import { classify } from '../src/engine/sectors/classify.ts';
import { contentHash } from '../src/engine/text/content-hash.ts';
import { entitiesOf } from '../src/engine/entities/named-things.ts';
import { gistOf } from '../src/engine/text/gist.ts';
import { findSensitive } from '../src/engine/privacy/find-sensitive.ts';
import { identifiersOf, identifierTerm, indexableText, queryTerms } from '../src/engine/text/index-text.ts';
import { sentences } from '../src/engine/text/sentences.ts';
import { estimateTokens } from '../src/engine/text/tokens.ts';
import { windowsOf } from '../src/engine/text/windows.ts';
import { normalise, termsIn, words } from '../src/engine/text/words.ts';
import { HOSTILE_SHAPES } from '../test/engine/text/hostile-shapes.ts';

const functions: readonly ((text: string) => unknown)[] = [
  normalise,
  words,
  termsIn,
  contentHash,
  indexableText,
  identifiersOf,
  identifierTerm,
  queryTerms,
  estimateTokens,
  sentences,
  (text) => windowsOf(text),
  (text) => gistOf(text),
  entitiesOf,
  (text) => classify(text, 'patterns'),
  (text) => classify(text, 'learned'),
  (text) => findSensitive(text, ['secrets', 'personal']),
];
const names = [
  'normalise',
  'words',
  'tokens',
  'contentHash',
  'indexableText',
  'identifiersOf',
  'identifierTerm',
  'queryTerms',
  'estimateTokens',
  'sentences',
  'windowsOf',
  'gistOf',
  'entitiesOf',
  'classify by patterns',
  'classify by weights',
  'findSensitive',
];

for (const [shape, make] of Object.entries(HOSTILE_SHAPES)) {
  for (const [index, run] of functions.entries()) {
    const [half, one, two] = [500_000, 1_000_000, 2_000_000].map((length) => {
      const text = make(length);
      // The best of three: garbage collection and neighbours would otherwise pass for growth.
      return Math.min(timeOf(run, text), timeOf(run, text), timeOf(run, text));
    }) as [number, number, number];
    const doubling = Math.max(one / half, two / one);
    if (one < 20 && !process.argv.includes('--all')) continue;
    console.log(
      JSON.stringify({
        bench: 'text-linear',
        function: names[index],
        shape,
        ms: [half, one, two].map(Math.round),
        doubling: Number(doubling.toFixed(1)),
      }),
    );
  }
}

function timeOf(run: (text: string) => unknown, text: string): number {
  const start = performance.now();
  run(text);
  return performance.now() - start;
}
