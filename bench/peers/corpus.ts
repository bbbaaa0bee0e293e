/**
 * The texts and questions that all systems of a run are given. They are written to files first, so that the measuring
 * process holds no more of them in its memory than it needs just then.
 */
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { createRandom } from '../../src/engine/random.ts';
import { createQuestions, createTexts } from '../load.ts';
import { createTemplateTexts, shuffledWords } from './template-text.ts';

export const KINDS = ['natural', 'template'] as const;
export type Kind = (typeof KINDS)[number];

/** Number of texts beyond the loaded ones, for the adds beside questions. */
export const SPARE_TEXTS = 6_000;
const QUESTIONS = 20_000;
const KNOWN = 50;
/** Number of words in the question for a known text: enough to tell the text from all others. */
const KNOWN_WORDS = 14;
/** A question about template texts has at least `LEAST_WORDS` words, and one of `LENGTHS` lengths from there on. */
const LEAST_WORDS = 5;
const LENGTHS = 6;
const SEED = 1;

/** A question made of words of a text, to check that a system finds the text. */
interface Known {
  readonly question: string;
  readonly text: string;
}

export function writeCorpus(folder: string, kind: Kind, size: number): void {
  const texts = (kind === 'natural' ? createTexts : createTemplateTexts)(size + SPARE_TEXTS, SEED);
  const random = createRandom(SEED + 1);
  const anyText = () => texts[Math.floor(random() * size)]!;
  const nextQuestion =
    kind === 'natural'
      ? createQuestions()
      : () => shuffledWords(anyText(), LEAST_WORDS + Math.floor(random() * LENGTHS), random);
  const known = Array.from({ length: KNOWN }, (): Known => {
    const text = anyText();
    return { question: shuffledWords(text, KNOWN_WORDS, random), text };
  });
  fs.writeFileSync(path.join(folder, 'texts'), texts.join('\n'));
  fs.writeFileSync(path.join(folder, 'questions'), Array.from({ length: QUESTIONS }, nextQuestion).join('\n'));
  fs.writeFileSync(path.join(folder, 'known'), JSON.stringify(known));
}

export function openCorpus(folder: string) {
  const questions = fs.readFileSync(path.join(folder, 'questions'), 'utf8').split('\n');
  const lines = readline
    .createInterface({ input: fs.createReadStream(path.join(folder, 'texts')) })
    [Symbol.asyncIterator]();
  let asked = 0;
  return {
    known: JSON.parse(fs.readFileSync(path.join(folder, 'known'), 'utf8')) as readonly Known[],
    /** Gives a question that was not given before, until all have been. */
    nextQuestion: (): string => questions[asked++ % questions.length]!,
    /** Gives the next texts; fewer only at the end of the file. */
    async take(count: number): Promise<string[]> {
      const taken: string[] = [];
      while (taken.length < count) {
        const { done, value } = await lines.next();
        if (done === true) break;
        taken.push(value);
      }
      return taken;
    },
  };
}
