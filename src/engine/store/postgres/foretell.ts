/**
 * Foretells the questions of a transaction: those that the last two transactions with the same first question asked
 * with the same values, such as the models of the tenant and its newest vector. They are asked in the round trip of the
 * first question. Each answer is of the present transaction; a wrong guess costs the server one question.
 */

import { LRUCache } from 'lru-cache';
import type { SqlValue } from './connection-messages.ts';

/** Most kinds of transactions that are remembered, by their first question. */
const MAX_KINDS = 64;
/** Most questions of a transaction that are remembered. */
const MAX_QUESTIONS = 64;

/** A question with its values, as it is sent. */
export interface SentQuestion {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

export interface Foreteller<Question extends SentQuestion> {
  begin(): void;
  /** Returns, for the first question of a transaction, those that will follow; nothing for a later one. */
  follow(question: SentQuestion): readonly Question[];
  /** Notes a question that was asked. Leave out one with a long answer, which a wrong guess would read in vain. */
  note(question: Question): void;
  end(): void;
}

interface Kind<Question> {
  /** Questions of the last transaction of this kind, by their text and values. */
  last: ReadonlyMap<string, Question>;
  /** Those of them that the transaction before it had asked, too. */
  repeated: readonly Question[];
}

export function createForeteller<Question extends SentQuestion>(): Foreteller<Question> {
  const kinds = new LRUCache<string, Kind<Question>>({ max: MAX_KINDS });
  let asked = new Map<string, Question>();
  let kind: Kind<Question> | undefined;
  return {
    begin() {
      asked = new Map();
      kind = undefined;
    },
    note(question) {
      if (asked.size < MAX_QUESTIONS) asked.set(nameOf(question), question);
    },
    follow(question) {
      if (kind !== undefined) return [];
      kind = kinds.get(question.text);
      if (kind === undefined) kinds.set(question.text, (kind = { last: new Map(), repeated: [] }));
      return kind.repeated;
    },
    end() {
      if (kind === undefined) return;
      const { last } = kind;
      kind.repeated = [...asked].flatMap(([name, question]) => (last.has(name) ? [question] : []));
      kind.last = asked;
      kind = undefined;
    },
  };
}

function nameOf({ text, values }: SentQuestion): string {
  return `${text}\n${JSON.stringify(values)}`;
}
