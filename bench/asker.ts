/**
 * A process that asks questions, started by `startAsker`: `node bench/asker.ts URL`, with an IPC channel. A message
 * names the number of questions to ask from now on; 0 ends the asking, and the answer holds the latencies. Each
 * question is new, because the server has cached the vector and the positions of the words of an old one.
 */
import { askQuestions, createQuestions } from './load.ts';

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
