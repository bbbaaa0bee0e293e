/**
 * Measures what each value of the floor `min_score` takes, wrongly and rightly, on every set:
 *
 *     node bench/floor-curve.ts PATH [--only NAME] [--floors 0.2,0.3,0.4] [--by-user]
 *
 * PATH holds the folders that `datasets.ts` reads; the project's own sets are added. With `--by-user` each user of a
 * set has rows of their own, such as each language, and is asked 100 questions of other sets. Equal code and data give
 * equal tables.
 */
import { OWN_SET } from '../test/quality/own-set.ts';
import { LANGUAGE_SETS } from '../test/quality/languages/all.ts';
import { evaluationSetOf } from '../test/quality/languages/language-set.ts';
import { type EvaluationQuestion, type EvaluationSet, type EvaluationUser, loadEvaluationSets } from './datasets.ts';
import { type Asked, type EvaluatedStore, openEvaluatedStore } from './evaluated-store.ts';
import { readArguments } from './read-arguments.ts';
import { foreignQuestions, otherUsersQuestions } from './variants.ts';

const NOW = Date.UTC(2025, 0, 1);
const K = 10;
/** The floor that cuts every memory, so that the reply names the best score. */
const ABOVE_ALL = 1;

async function main(): Promise<void> {
  const { positionals, values } = readArguments(
    'node bench/floor-curve.ts PATH [--only NAME] [--floors 0.2,0.3,0.4] [--by-user]',
    {
      only: { type: 'string' },
      floors: { type: 'string', default: '0.2,0.25,0.3,0.35,0.4,0.5' },
      'by-user': { type: 'boolean', default: false },
    },
    ({ positionals }) => positionals.length === 1,
  );
  const floors = values.floors.split(',').map(Number);
  const sets = [...loadEvaluationSets(positionals[0]!), evaluationSetOf(LANGUAGE_SETS), { ...OWN_SET, name: 'own' }];
  const line = (cells: readonly string[]) => console.log(`| ${cells.join(' | ')} |`);
  const heads = ['set', 'min_score', 'wrongly empty', 'rightly empty', 'foreign empty', 'another user’s empty'];
  line(heads);
  line(heads.map((_, place) => (place === 0 ? '---' : '--:')));
  for (const set of sets.filter(({ name }) => values.only === undefined || name === values.only)) {
    const strangers = sets.filter((other) => other !== set).flatMap(({ questions }) => questions);
    await using store = await openEvaluatedStore(set, { now: NOW });
    for (const group of values['by-user'] ? set.users.map((user) => [user]) : [set.users]) {
      const scores = await bestScores(store, { set, users: group, strangers });
      const name = values['by-user'] ? `${set.name} ${group[0]!.userId}` : set.name;
      for (const floor of floors) line([name, `${floor}`, ...emptyShares(scores, floor)]);
    }
  }
}

function emptyShares(scores: BestScores, floor: number): string[] {
  const empty = (kind: keyof BestScores) => scores[kind].filter((best) => best < floor).length;
  const share = (kind: keyof BestScores) =>
    scores[kind].length === 0 ? '–' : (empty(kind) / scores[kind].length).toFixed(3).replace(/^0/, '');
  const wrongly = `${empty('answerable')} of ${scores.answerable.length}`;
  return [wrongly, share('unanswerable'), share('foreign'), share('others')];
}

/** The best score of any memory for each question, 0..1; infinite where a default floor does not act. */
interface BestScores {
  readonly answerable: readonly number[];
  readonly unanswerable: readonly number[];
  readonly foreign: readonly number[];
  readonly others: readonly number[];
}

/**
 * Asks all questions of a set, and returns the best score of any memory for each of them.
 * @param strangers questions of other sets
 */
async function bestScores(
  store: EvaluatedStore,
  {
    set,
    users,
    strangers,
  }: {
    readonly set: EvaluationSet;
    readonly users: readonly EvaluationUser[];
    readonly strangers: readonly EvaluationQuestion[];
  },
): Promise<BestScores> {
  const of = async (questions: readonly Asked[]) => {
    const scores: number[] = [];
    for (const question of questions) scores.push(await bestScore(store, question));
    return scores;
  };
  const isOwn = ({ userId }: Asked) => users.some((user) => user.userId === userId);
  const questions = store.questions.filter(isOwn);
  return {
    answerable: await of(questions.filter(({ relevant }) => relevant.size > 0)),
    unanswerable: await of(questions.filter(({ relevant }) => relevant.size === 0)),
    foreign: await of(foreignQuestions({ ...set, users }, strangers)),
    others: await of(otherUsersQuestions(set, set.questions.length).filter(isOwn)),
  };
}

async function bestScore(store: EvaluatedStore, question: Asked): Promise<number> {
  if ((await store.ask(question, { k: K })).floor?.acted === false) return Infinity;
  const { hits, floor } = await store.ask(question, { k: K, minScore: ABOVE_ALL });
  return Math.max(floor?.bestBelow ?? 0, ...hits.map(({ score }) => score));
}

await main();
