import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import iconv from 'iconv-lite';
import { expect, test } from 'vitest';
import { decodeText } from '../../../src/engine/documents/decode-text.ts';
import { DocumentError } from '../../../src/engine/documents/document-error.ts';

/** Article 1 of the Universal Declaration of Human Rights, and what shows the other letters of a language. */
const TEXTS = {
  bg: 'Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва да се отнасят помежду си в дух на братство.',
  cs: 'Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají spolu jednat v duchu bratrství.',
  da: 'Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med fornuft og samvittighed, og de bør handle mod hverandre i en broderskabets ånd.',
  de: 'Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.',
  el: 'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση.',
  en: 'It’s a “nice” day — isn’t it? We don’t mind the café or the naïve résumé… He said: “Leave me alone”. The price is £5.',
  fr: 'Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience. L’été, où ça, garçon, à Noël.',
  ar: 'يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء.',
  he: 'כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו ברוח של אחווה.',
  hu: 'Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek.',
  ja: 'すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。',
  ko: '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.',
  lt: 'Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas protas ir sąžinė ir jie turi elgtis vienas kito atžvilgiu kaip broliai.',
  pl: 'Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.',
  ru: 'Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.',
  sl: 'Vsi ljudje se rodijo svobodni in imajo enako dostojanstvo in enake pravice. Človečnost, življenje, država, še več.',
  th: 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ',
  tr: 'Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.',
  uk: 'Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і повинні діяти у відношенні один до одного в дусі братерства.',
  zh: '人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神互相对待。人人有资格享受本宣言所载的一切权利和自由',
  'zh-Hant':
    '人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神互相對待。人人有資格享受本宣言所載的一切權利和自由',
} as const;

const ENCODINGS: readonly (readonly [language: keyof typeof TEXTS, encodings: readonly string[]])[] = [
  ['ru', ['windows-1251', 'koi8-r', 'ibm866', 'x-mac-cyrillic', 'iso-8859-5']],
  ['uk', ['windows-1251', 'koi8-u', 'iso-8859-5']],
  ['bg', ['windows-1251', 'ibm866']],
  ['el', ['windows-1253', 'iso-8859-7']],
  ['he', ['windows-1255', 'iso-8859-8']],
  ['ar', ['windows-1256', 'iso-8859-6']],
  ['th', ['windows-874']],
  ['ja', ['shift_jis', 'euc-jp']],
  ['ko', ['euc-kr']],
  ['zh', ['gbk', 'gb18030']],
  ['zh-Hant', ['big5']],
  ['pl', ['windows-1250', 'iso-8859-2']],
  ['cs', ['windows-1250', 'iso-8859-2']],
  ['hu', ['windows-1250', 'iso-8859-2']],
  ['lt', ['windows-1257']],
  ['tr', ['windows-1254']],
  ['da', ['windows-1252']],
  ['de', ['windows-1252', 'iso-8859-1']],
  ['fr', ['windows-1252']],
  ['en', ['windows-1252']],
];
const CASES = ENCODINGS.flatMap(([language, encodings]) => encodings.map((encoding) => [language, encoding] as const));

/** iconv-lite has its own name for one of them. */
function encode(text: string, encoding: string): Buffer {
  return iconv.encode(text, encoding === 'x-mac-cyrillic' ? 'maccyrillic' : encoding);
}

test.each(CASES)('%s in %s is decoded right, declared or not', async (language, encoding) => {
  const text = TEXTS[language];
  const bytes = encode(text, encoding);
  expect(isUtf8(bytes)).toBe(false);
  expect(await decodeText(bytes, encoding)).toEqual({ text, warnings: [], omissions: [] });
  expect(await decodeText(bytes, null)).toEqual({ text, warnings: [], omissions: [] });
});

test.each([
  ['pl', 'cp852'],
  ['de', 'cp850'],
  ['de', 'macintosh'],
  ['fr', 'macintosh'],
  ['en', 'macintosh'],
  ['sl', 'windows-1250'],
  ['sl', 'iso-8859-2'],
] as const)(
  '%s in %s is refused rather than read wrong, and read right when it is declared',
  async (language, encoding) => {
    const bytes = encode(TEXTS[language], encoding);
    await expect(decodeText(bytes, null)).rejects.toMatchObject({ code: 'unsupported_encoding' });
    expect((await decodeText(bytes, encoding)).text).toBe(iconv.decode(bytes, encoding));
  },
);

test('so much as a line of a text is decoded as the whole, or refused', async () => {
  // The Mac's encoding of Cyrillic is that of Windows but for capitals and one letter, which need not stand in a line.
  const others = CASES.filter(
    ([language, encoding]) => encoding !== 'x-mac-cyrillic' && !/\p{sc=Latin}/u.test(TEXTS[language]),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...others), fc.nat(), fc.nat(), async ([language, encoding], start, end) => {
      const text = TEXTS[language];
      const from = start % (text.length - 30);
      const piece = text.slice(from, from + 30 + (end % (text.length - from - 29))).trim();
      const decoded = await decodeText(encode(piece, encoding), null).catch((error: unknown) => error);
      if (decoded instanceof DocumentError) expect(decoded.code).toBe('unsupported_encoding');
      else expect(decoded).toEqual({ text: piece, warnings: [], omissions: [] });
    }),
    { numRuns: 500 },
  );
});

test('any text in an encoding of Unicode is decoded, with or without a byte order mark, whatever is declared', async () => {
  const normal = (text: string) => text.replace(/[^\P{C}\n\t]|\ufeff/gu, '');
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 200 }), async (raw) => {
      const text = normal(raw).toWellFormed();
      expect((await decodeText(Buffer.from(text), null)).text).toBe(text);
      expect((await decodeText(Buffer.from(text), 'utf-8')).text).toBe(text);
      for (const encoding of ['utf-8', 'utf-16le', 'utf-16be', 'utf-32le', 'utf-32be']) {
        const bytes = iconv.encode(text, encoding, { addBOM: true });
        expect(await decodeText(bytes, 'koi8-r')).toEqual({ text, warnings: [], omissions: [] });
      }
    }),
  );
});

test.each(['utf-16le', 'utf-16be', 'utf-32le', 'utf-32be'])(
  '%s is told without a byte order mark',
  async (encoding) => {
    const text = 'DateTime,Bid,Ask\n07/19/2015 21:00,1.083';
    expect((await decodeText(iconv.encode(text, encoding, { addBOM: false }), null)).text).toBe(text);
  },
);

test('Chinese in UTF-16 is told by its line ends', async () => {
  const text = `${TEXTS.zh}\n`.repeat(5);
  expect((await decodeText(Buffer.from(text, 'utf16le'), null)).text).toBe(text);
});

test('zeros that stand at odd places of a text do not make it UTF-16', async () => {
  const line = 'hello\0world text with nul bytes\n';
  const { text } = await decodeText(Buffer.from(line.repeat(40)), null);
  expect(text).toBe(line.replace('\0', '').repeat(40));
  const kana = 'これはながいぶんしょうです。つぎのぎょうもあります。\n'.repeat(4);
  expect((await decodeText(iconv.encode(kana, 'utf-16le'), null)).text).toBe(kana);
});

test('senders who declare latin1 of everything are not believed when the text is UTF-8', async () => {
  expect((await decodeText(Buffer.from(TEXTS.de), 'ISO-8859-1')).text).toBe(TEXTS.de);
  expect((await decodeText(encode(TEXTS.de, 'latin1'), 'utf-8')).text).toBe(TEXTS.de);
});

test('the Japanese of old e-mail is told by its escapes', async () => {
  const bytes = Buffer.from('\x1b$B$3$s$K$A$O\x1b(B, world', 'latin1');
  expect((await decodeText(bytes, null)).text).toBe('こんにちは, world');
});

test('a few broken sequences in UTF-8 become U+FFFD, with a warning', async () => {
  const bytes = Buffer.concat([Buffer.from(TEXTS.ru), Buffer.from('c3280a', 'hex'), Buffer.from(TEXTS.el)]);
  const { text, warnings } = await decodeText(bytes, null);
  expect(text).toBe(`${TEXTS.ru}\ufffd(\n${TEXTS.el}`);
  expect(warnings).toMatchObject([{ code: 'undecodable_bytes' }]);
  const cut = Buffer.from(`${TEXTS.fr} é`).subarray(0, -1);
  expect((await decodeText(cut, null)).text).toBe(`${TEXTS.fr} \ufffd`);
});

test('a U+FFFD that stands in the file is no loss', async () => {
  expect(await decodeText(Buffer.from('a \ufffd b'), null)).toEqual({
    text: 'a \ufffd b',
    warnings: [],
    omissions: [],
  });
});

test('line ends become one kind, control characters go', async () => {
  expect((await decodeText(Buffer.from('a\r\nb\rc\fd\0\x07e\u0085f\tg'), null)).text).toBe('a\nb\nc\nde\nf\tg');
});

test.each(['utf-7', 'base64', 'hex', 'no-such-charset', '', 'iso-2022-kr'])(
  'the charset %j is refused',
  async (charset) => {
    const bytes = encode(TEXTS.ru, 'koi8-r');
    await expect(decodeText(bytes, charset)).rejects.toMatchObject({ code: 'unsupported_encoding' });
  },
);

test('random bytes are refused or decoded to well-formed text without control characters', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
      try {
        const { text } = await decodeText(bytes, null);
        expect(text.isWellFormed()).toBe(true);
        expect(text).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f]/);
      } catch (error) {
        expect(error).toMatchObject({ code: 'unsupported_encoding' });
      }
    }),
  );
});
