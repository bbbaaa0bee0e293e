import { describe, expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import { areSameDate, datesIn, fitOfDate, type NamedDate } from '../../../src/engine/text/dates.ts';

/** A Wednesday. */
const NOW = Date.UTC(2024, 4, 15, 10);
const day = (month: number, day: number, year?: number): NamedDate => ({ kind: 'day', year, month, day });
const month = (month: number, year?: number): NamedDate => ({ kind: 'month', year, month });
const range = (from: string, to: string): NamedDate => ({ kind: 'range', from: Date.parse(from), to: Date.parse(to) });

test.each<[string, NamedDate[]]>([
  ['What happened on 3 June 2023?', [day(6, 3, 2023)]],
  ['What happened on the 3rd of June?', [day(6, 3)]],
  ['Where was Ann on June 21st, 2023?', [day(6, 21, 2023)]],
  ['What did Ann buy in June?', [month(6)]],
  ['What did Ann buy in May 2022?', [month(5, 2022)]],
  ['In May, what did Ann buy?', [month(5)]],
  ['Seit März wohne ich in Bonn.', [month(3)]],
  ['Who came on 2023-06-03?', [day(6, 3, 2023)]],
  ['Who came in 2023-06?', [month(6, 2023)]],
  ['Wer kam am 3. Juni 2023?', [day(6, 3, 2023)]],
  ['Wer kam am 03.06.2023?', [day(6, 3, 2023)]],
  ['Wer kam im März?', [month(3)]],
  ['2023年6月3日谁来了？', [day(6, 3, 2023)]],
  ['8月25号是谁的生日？', [day(8, 25)]],
  ['我6月去了哪里？', [month(6)]],
  ['What did I do yesterday?', [range('2024-05-14', '2024-05-15')]],
  ['What did I do last week?', [range('2024-05-06', '2024-05-13')]],
  ['Was war letzte Woche?', [range('2024-05-06', '2024-05-13')]],
  ['我上周去了哪里？', [range('2024-05-06', '2024-05-13')]],
  ['我上个月买了什么？', [range('2024-04-01', '2024-05-01')]],
  [
    '上海上周末本周今日下雨吗？',
    [range('2024-05-15', '2024-05-16'), range('2024-05-06', '2024-05-13'), range('2024-05-13', '2024-05-20')],
  ],
  ['线上周会几点？马上周末。晚上周杰伦唱歌，早上星期三。', []],
  ['晚上月亮在哪里？桌上个月的花瓶呢？', []],
  ['日本月刊和日本周边在哪里买？', []],
  ['谁在今日头条工作？', []],
  ['Where did I go last year?', [range('2023-01-01', '2024-01-01')]],
  ['May I march in it?', []],
  ['Who is April?', []],
  ['Which of 12 May bugs is in version 1.2.3?', [day(5, 12)]],
  ['Does 3.14 or 0.5.20 or 2023-13-40 fit?', []],
  ['What do Section 3.4. and § 5.6. say, and Kapitel 7.8.?', []],
  ['What is Section 3.4. of 03.06.2023?', [day(6, 3, 2023)]],
  ['Who is 45 June?', []],
])('%s', (question, expected) => {
  expect(datesIn(question, NOW)).toEqual(expected);
});

test('a question has at most four dates', () => {
  expect(datesIn('On 1 June, 2 June, 3 June, 4 June or 5 June?', NOW)).toHaveLength(4);
});

describe('a time fits', () => {
  const june3 = Date.UTC(2023, 5, 3);
  test.each<[string, NamedDate, number, number]>([
    ['the named day', day(6, 3, 2023), june3 + DAY_MS / 2, 1],
    ['the evening before, as the day depends on the zone', day(6, 3, 2023), june3 - DAY_MS / 2, 1],
    ['the days on which people tell it', day(6, 3, 2023), june3 + 5 * DAY_MS, 0.5],
    ['no other day', day(6, 3, 2023), june3 + 20 * DAY_MS, 0],
    ['no other year', day(6, 3, 2022), june3, 0],
    ['any year where none is named', day(6, 3), june3, 1],
    ['the new year, told afterwards', day(12, 31), Date.UTC(2024, 0, 4), 0.5],
    ['the named month', month(6, 2023), june3, 1],
    ['the beginning of the next month', month(5, 2023), june3, 0.4],
    ['no other month', month(8), june3, 0],
    ['a range', range('2023-06-01', '2023-06-08'), june3, 1],
    ['nothing behind a range', range('2023-06-01', '2023-06-03'), june3, 0],
  ])('%s', (_, date, time, expected) => {
    expect(fitOfDate(date, time)).toBe(expected);
  });
});

test('two dates are the same but for a year that one leaves out', () => {
  expect(areSameDate(day(6, 3), day(6, 3, 2023))).toBe(true);
  expect(areSameDate(day(6, 3, 2022), day(6, 3, 2023))).toBe(false);
  expect(areSameDate(month(6), day(6, 3))).toBe(true);
  expect(areSameDate(day(6, 3), month(6))).toBe(false);
  expect(areSameDate(range('2023-06-01', '2023-06-08'), range('2023-06-01', '2023-06-08'))).toBe(false);
});
