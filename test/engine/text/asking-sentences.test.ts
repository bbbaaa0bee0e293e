import { describe, expect, test } from 'vitest';
import { askingSentences } from '../../../src/engine/text/asking-sentences.ts';

describe('the sentences of a message that ask', () => {
  test('a message of one sentence is left whole', () => {
    for (const message of ['When does the train leave?', 'train to Vienna', 'What is v1.2.3 about?', '', '???'])
      expect(askingSentences(message), message).toMatchObject({ sentences: [], areKnown: true, standAlone: false });
  });

  test('are those that end in a question mark, also before a closing quote', () => {
    expect(askingSentences('It rains. When does it stop? I have no coat.').sentences).toEqual(['When does it stop?']);
    expect(askingSentences('She said: “Where is it?” Nobody knew.').sentences).toEqual(['She said: “Where is it?”']);
    expect(askingSentences('今天很累。我的生日是哪天？明天再说。').sentences).toEqual(['我的生日是哪天？']);
    expect(askingSentences('وصلت اليوم. متى يبدأ الاجتماع؟ شكرا.').sentences).toEqual(['متى يبدأ الاجتماع؟']);
  });

  test('are those with a question word where none has a mark', () => {
    expect(askingSentences('It rains. When does it stop. I have no coat.').sentences).toEqual(['When does it stop.']);
    expect(askingSentences('手机很好。我的手机怎么样。').sentences).toEqual(['我的手机怎么样。']);
    expect(askingSentences('Der Zug war spät. Wann fährt der nächste. Danke.').sentences).toEqual([
      'Wann fährt der nächste.',
    ]);
  });

  test('are not known where neither a mark nor a word tells', () => {
    expect(askingSentences('The gate is closed. Find the key.')).toMatchObject({
      sentences: ['The gate is closed.', 'Find the key.'],
      areKnown: false,
    });
  });

  test('may be others than those with a question word, among three and more and where no mark tells', () => {
    const mayAsk = (message: string) => askingSentences(message).mayAsk;
    expect(mayAsk('How good it was. Papers on shells. We slept.')).toEqual(['Papers on shells.', 'We slept.']);
    expect(mayAsk('How good it was! Papers on shells? We slept.')).toEqual([]);
    expect(mayAsk('How good it was. Papers on shells.')).toEqual([]);
    expect(mayAsk('The gate is closed. Find the key. We slept.')).toEqual([]);
    const statements = Array.from({ length: 9 }, (_, place) => `We saw number ${place}.`);
    expect(mayAsk(['How good it was.', ...statements].join(' '))).toEqual([
      ...statements.slice(0, 3),
      ...statements.slice(5),
    ]);
  });

  test('a line end inside a paragraph ends no sentence, an empty line does', () => {
    expect(
      askingSentences('what similarity laws must be obeyed\nwhen constructing models\nof heated aircraft'),
    ).toMatchObject({
      sentences: [],
      areKnown: true,
    });
    expect(askingSentences('The key is lost\n\nwhere is the spare key').sentences).toEqual(['where is the spare key']);
  });

  test('are at most four, the last ones; long messages are left whole', () => {
    const questions = Array.from({ length: 6 }, (_, place) => `Where is number ${place}?`);
    expect(askingSentences(questions.join(' ')).sentences).toEqual(questions.slice(2));
    expect(askingSentences('Where is it? '.repeat(400)).sentences).toEqual([]);
  });

  test('begin with a small letter where people type so; an abbreviation ends none', () => {
    expect(askingSentences('the train was late. when does the next one leave. thanks').sentences).toEqual([
      'when does the next one leave.',
    ]);
    expect(askingSentences('what does e.g. a tram cost').sentences).toEqual([]);
  });

  test('are not cut inside of quotes', () => {
    const query = '那个主要内容是"研讨新技术，促进交流。提高水平。"的活动，时间是什么？地点在哪里？';
    expect(askingSentences(query).sentences).toEqual([
      '那个主要内容是"研讨新技术，促进交流。提高水平。"的活动，时间是什么？',
      '地点在哪里？',
    ]);
    expect(askingSentences('Who said "It is over. Go home." at the party?').sentences).toEqual([]);
  });

  test('stand alone where marks tell which ask, or among three sentences and more', () => {
    const standAlone = (message: string) => askingSentences(message).standAlone;
    expect(standAlone('It rains. When does it stop?')).toBe(true);
    expect(standAlone('It rains. I am cold. When does it stop.')).toBe(true);
    expect(standAlone('Has anyone measured this shell. How does it buckle.')).toBe(false);
    expect(standAlone('When does it stop?')).toBe(false);
  });
});
