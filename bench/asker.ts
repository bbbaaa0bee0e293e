import { askQuestions, createQuestions } from './load.ts';

/**
 * Asks from a process of its own, as `startAsker` wants it: `node bench/asker.ts URL`, with a channel. A message says how many questions may
 * be asked from now on, 0 that it is enough; the latencies are the answer. Each question is a new one: for one that was asked before the
 * server knows the vector and the places of its words.
 */
const url = process.argv[2]!;
const nextQuestion = createQuestions();
let left = 0;

process.on('message', (questions: number) => {
  const isAsking = left > 0;
  left = questions;
  if (!isAsking && left > 0)
    void askQuestions(url, () => left-- > 0, nextQuestion).then((latencies) => process.send!(latencies));
});
process.on('disconnect', () => process.exit());
