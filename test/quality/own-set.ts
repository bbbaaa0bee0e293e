import type { EvaluationMemory, EvaluationQuestion, EvaluationSet } from '../../bench/datasets.ts';

/** A question of the set, with the reason for its answer. */
interface OwnQuestion extends EvaluationQuestion {
  /** Why these memories and no others are expected. */
  readonly reason: string;
}

export interface OwnSet extends EvaluationSet {
  readonly questions: readonly OwnQuestion[];
}

type Told = readonly [key: string, content: string, more?: Partial<EvaluationMemory>];

/** Makes the memories of one conversation, with a minute between two turns. */
function session(sessionId: string, start: string, turns: readonly Told[]): EvaluationMemory[] {
  return turns.map(([key, content, more], place) => ({
    key,
    sessionId,
    content,
    eventTime: Date.parse(start) + place * 60_000,
    ...more,
  }));
}

const NORA: readonly EvaluationMemory[] = [
  ...session('hike', '2025-03-02T10:00Z', [
    ['hike-1', 'Ivo: Are you still up for the ridge walk on Saturday?'],
    ['hike-2', 'Nora: Yes! I bought new boots for it, the old ones leaked at the Rila lakes.'],
    ['hike-3', 'Ivo: Great. The weather report says fog until eleven, so let us start late.'],
    ['hike-4', 'Nora: Then I take the 8:40 bus from the east station and meet you at the chapel.'],
    ['hike-5', 'Ivo: I bring the gas stove, you bring the tea.'],
    ['hike-6', 'Nora: Deal. Black tea with bergamot, nothing with hibiscus, I cannot stand it.'],
    ['hike-7', 'Ivo: My brother Ruben comes along, he has his first week off since he joined the fire brigade.'],
    ['hike-8', 'Nora: Lovely, I have not seen Ruben since your graduation.'],
  ]),
  ...session('after-hike', '2025-03-09T18:00Z', [
    ['after-1', 'Nora: My knee is swollen since the descent, the doctor calls it a strained ligament.'],
    ['after-2', 'Ivo: Oh no. How long do you have to rest?'],
    ['after-3', 'Nora: Three weeks without running. I may swim, though.'],
    ['after-4', 'Ivo: Then come with me to the indoor pool on Wednesdays, I go right after work.'],
    ['after-5', 'Nora: Gladly. I have to dig out my goggles first.'],
    ['after-6', 'Ivo: Ruben took forty photos, he will put them into the shared album tonight.'],
  ]),
  ...session('pottery', '2025-03-16T19:00Z', [
    ['pot-1', 'Tessa: How was the pottery evening?'],
    ['pot-2', 'Nora: Messy and wonderful. I threw two bowls, one of them survived the kiln.'],
    ['pot-3', 'Tessa: Which glaze did you choose?'],
    ['pot-4', 'Nora: Celadon, that pale green one. The teacher says it runs if you put it on too thick.'],
    ['pot-5', 'Tessa: I would love to join. When is the next one?'],
    ['pot-6', 'Nora: Every other Thursday at seven, in the old dairy behind the market hall.'],
    ['pot-7', 'Tessa: Thursdays are my choir nights. Perhaps in summer.'],
  ]),
  ...session('cats', '2025-03-23T12:00Z', [
    ['cat-1', 'Nora: We adopted two cats from the shelter, Pixel and Miso.'],
    ['cat-2', 'Tessa: Congratulations! Who is who?'],
    ['cat-3', 'Nora: Pixel is the grey one with a torn ear, Miso is ginger and sleeps in the sink.'],
    ['cat-4', 'Tessa: Do they get along with your neighbour’s dog?'],
    ['cat-5', 'Nora: Miso hissed at him once and has ruled the staircase since.'],
    ['cat-6', 'Nora: The vet wants to see Pixel on the 14th of April for his second vaccination.'],
  ]),
  ...session('wedding', '2025-04-06T15:00Z', [
    ['wed-1', 'Nora: My sister Lena is getting married in September, on a farm near the coast.'],
    ['wed-2', 'Ivo: What will you wear?'],
    ['wed-3', 'Nora: A dark green dress, if the tailor manages to shorten it in time.'],
    ['wed-4', 'Ivo: And who makes the cake?'],
    ['wed-5', 'Nora: My aunt. Three tiers, lemon and poppy seed, she has been practising since January.'],
    ['wed-6', 'Nora: I am to give a speech and have no idea how to begin.'],
    ['wed-7', 'Ivo: Begin with the story of the two of you and the stolen rowing boat.'],
  ]),
  ...session('guitar', '2025-04-20T20:00Z', [
    ['gui-1', 'Nora: I sold my electric guitar to pay for the move.'],
    ['gui-2', 'Ivo: The red one from your first band? That hurts.'],
    ['gui-3', 'Nora: A bit. A student from the conservatory has it now, she played it better than I ever did.'],
    ['gui-4', 'Ivo: You still have the ukulele.'],
    ['gui-5', 'Nora: And the neighbours are grateful that it has no amplifier.'],
  ]),
  ...session('', '2025-01-10T09:00Z', [
    ['ivo-birthday', 'Ivo has his birthday on the 12th of May.'],
    ['tessa-birthday', 'Tessa has her birthday on the 21st of May.'],
    ['ruben-birthday', 'Ruben has his birthday on the 12th of June.'],
    ['ivo-allergy', 'Ivo is allergic to walnuts; he carries an adrenaline pen.'],
    ['tessa-allergy', 'Tessa is allergic to penicillin.'],
    ['ruben-allergy', 'Ruben is allergic to cat hair, but only in closed rooms.'],
    ['old-address', 'My address is 14 Linden Street, second floor.', { tags: ['address'] }],
    [
      'new-address',
      'My address is 3 Harbour Lane, with the blue door.',
      { tags: ['address'], supersedes: 'old-address' },
    ],
    ['old-job', 'I work as an assistant in a notary’s office.', { type: 'profile' }],
    ['new-job', 'I work as a sound archivist at the city museum.', { type: 'profile', supersedes: 'old-job' }],
    ['pref-seat', 'On trains I want a window seat facing forward, in the quiet coach.', { type: 'preference' }],
    ['pref-mail', 'Keep emails short and without exclamation marks when you write in my name.', { type: 'preference' }],
    ['pref-food', 'I eat vegetarian, and fish on holidays by the sea.', { type: 'preference' }],
    ['pref-sleep', 'No calls before half past nine in the morning, please.', { type: 'preference' }],
    ['dentist', 'The dentist appointment moved to the 3rd of June at 16:15.', { tags: ['appointment'] }],
    ['passport', 'My passport runs out in February 2027.', { tags: ['documents'] }],
  ]),
];

const RAFAEL: readonly EvaluationMemory[] = [
  ...session('incident', '2025-05-05T08:00Z', [
    ['inc-1', 'Payments were down from 07:52 to 08:31 this morning; customers saw error PAY-5031.'],
    ['inc-2', 'Cause: the certificate of the card gateway had expired, and nobody got the reminder mail.'],
    ['inc-3', 'Fix: renewed it by hand with `certbot renew --cert-name gateway` and restarted haproxy.'],
    ['inc-4', 'Follow-up: put the expiry of all certificates into the dashboard, alarm at 21 days.'],
    ['inc-5', 'Olga writes the report for the bank until Friday.'],
  ]),
  ...session('review', '2025-05-12T13:00Z', [
    ['rev-1', 'Review of pull request 482: retryWithBackoff() sleeps while it holds the row lock.'],
    ['rev-2', 'Jonas agreed and moves the sleep out of the transaction.'],
    ['rev-3', 'The test for it was flaky since it compared wall-clock times.'],
    ['rev-4', 'We decided that every test takes the clock as an argument.'],
  ]),
  ...session('', '2025-04-01T09:00Z', [
    ['port-staging', 'The staging database listens on port 6543, behind the pooler.', { tags: ['postgres'] }],
    [
      'port-production',
      'The production database listens on port 5432 and accepts only the VPN.',
      { tags: ['postgres'] },
    ],
    ['host-redis', 'Redis of staging: redis-stg.internal:6380, TLS on, no password.'],
    ['path-config', 'The exchange rates are read from services/ledger/config/fx-rates.yaml at start.'],
    ['path-logs', 'Logs of the settlement job lie in /var/log/settle/current.jsonl on the batch host.'],
    [
      'parse-iban',
      'parseIban() in src/bank/iban.ts accepts lower case and blanks, and throws IbanError for a wrong check digit.',
    ],
    ['format-iban', 'formatIban() groups the account number by four for print; it lives in src/print/iban-format.ts.'],
    ['user-name', 'The column userName was renamed to display_name in migration 0042_profile.sql.'],
    ['old-node', 'All services run on Node 20.', { tags: ['runtime'] }],
    ['new-node', 'All services run on Node 24 since the May release.', { tags: ['runtime'], supersedes: 'old-node' }],
    ['old-deploy', 'Deploys to production happen on Wednesdays after lunch.', { tags: ['deploy'] }],
    [
      'new-deploy',
      'Deploys to production happen every morning at ten, except Fridays.',
      { tags: ['deploy'], supersedes: 'old-deploy' },
    ],
    ['deploy-staging', 'Staging is deployed by every merge to main, without anybody’s approval.', { tags: ['deploy'] }],
    ['flag-newcheckout', 'The feature flag checkout.v3 is on for 5 % of the merchants in Portugal.'],
    ['flag-ledger', 'The feature flag ledger.doubleEntry must never be turned off again: it drops the audit rows.'],
    [
      'timeout',
      'The gateway gives up after 12 seconds; our own client must wait longer than that, so it is set to 15.',
    ],
    ['webhook', 'Webhooks are signed with HMAC-SHA256 in the header X-Pay-Signature; replay window five minutes.'],
    ['idempotency', 'A charge without an idempotency key is refused with 428 since version 2.7.0 of the API.'],
    ['rounding', 'Amounts are integers in the smallest unit; JPY and KRW have no decimals, BHD has three.'],
    ['oncall-olga', 'Olga is on call in odd weeks.', { tags: ['on-call'] }],
    ['oncall-jonas', 'Jonas is on call in even weeks.', { tags: ['on-call'] }],
    ['phone-olga', 'Olga’s phone for emergencies ends in 4471.'],
    ['phone-jonas', 'Jonas’s phone for emergencies ends in 9062.'],
    [
      'flame',
      'Profile with `perf record -g` and look at the flame graph before guessing: last time it was JSON.parse.',
    ],
    ['vacuum', 'Autovacuum of the table ledger_entries was too slow; scale factor 0.01 fixed the bloat.'],
    ['index', 'The query for open invoices needs the index invoices_by_due_date, else it scans 40 million rows.'],
    [
      'docker',
      'The image is built with `docker buildx build --platform linux/arm64`, since the new hosts are Graviton.',
    ],
    ['secret', 'Secrets come from the vault at boot; the agent socket is /run/vault/agent.sock.'],
    ['lint', 'eslint runs with --max-warnings 0, and console.log is an error outside of scripts/.'],
    ['c++', 'The risk engine is written in C++20 and talks to us over gRPC on port 7070.'],
    ['csharp', 'The old back office is C# and reads the ledger through a view, nothing else.'],
    ['sso', 'Single sign-on goes through Keycloak; the realm is called merchants-eu.'],
    ['backup', 'Base backups start at 02:30 UTC and are kept for 35 days in another region.'],
    ['restore', 'A restore was practised on the 9th of April and took 47 minutes.'],
    ['merchant-a', 'Merchant Bluebird Books pays out weekly, on Mondays.', { title: 'Bluebird Books' }],
    ['merchant-b', 'Merchant Blueberry Farm pays out monthly, on the last working day.', { title: 'Blueberry Farm' }],
    ['standup', 'The stand-up is at 9:45, fifteen minutes, cameras optional.'],
    ['editor', 'I use Helix with the gruvbox theme and never a mouse.', { type: 'preference' }],
    ['review-style', 'In reviews I want questions first and commands never.', { type: 'preference' }],
  ]),
];

const MEI: readonly EvaluationMemory[] = [
  ...session('家', '2025-02-01T08:00Z', [
    ['zh-mother', '妈妈下周三做白内障手术,我请了两天假陪她。'],
    ['zh-father', '爸爸最近血压偏高,医生让他每天早上量一次。'],
    ['zh-brother', '弟弟考上了南京大学的物理系,九月开学。'],
    ['zh-cousin', '表姐在苏州开了一家花店,主要做婚礼布置。'],
    ['zh-rent', '房租从四月起涨到五千八百元,房东同意修热水器。'],
    ['zh-birthday-li', '李静的生日是十月三日,她喜欢水彩颜料。'],
    ['zh-birthday-wang', '王磊的生日是十月十三日,他只收实用的礼物。'],
    ['zh-allergy', '李静对虾过敏,聚餐别点海鲜。'],
  ]),
  ...session('旅行', '2025-03-05T08:00Z', [
    ['zh-trip-1', '五一我们坐高铁去成都,订了春熙路附近的酒店。'],
    ['zh-trip-2', '第二天去看大熊猫,早上七点半出发。'],
    ['zh-trip-3', '王磊负责买火车票,我负责做攻略。'],
    ['zh-trip-4', '回程改成了五月四日下午的航班,因为高铁票卖完了。'],
    ['zh-hotpot', '成都那家火锅店叫蜀九香,要提前一天排号。'],
  ]),
  ...session('', '2025-01-20T08:00Z', [
    ['zh-coffee', '我只喝不加糖的美式咖啡,下午三点以后不喝。', { type: 'preference' }],
    ['zh-music', '睡前喜欢听肖邦的夜曲。', { type: 'preference' }],
    ['zh-run', '每周二和周四晚上在滨江跑五公里。'],
    ['zh-book', '正在读《三体》第二部,读到面壁者那一章。'],
    ['zh-old-phone', '我的手机号尾号是2218。'],
    ['zh-new-phone', '我的手机号换了,现在尾号是6604。', { supersedes: 'zh-old-phone' }],
    ['zh-gym', '健身房的年卡到八月底到期。'],
    ['zh-plant', '阳台的龟背竹每十天浇一次水,茉莉要每天浇。'],
  ]),
  ...session('Wohnung', '2025-04-03T17:00Z', [
    ['de-keller', 'Der Kellerschlüssel hängt neben dem Sicherungskasten.'],
    ['de-muell', 'Die Papiertonne wird jeden zweiten Dienstag geleert, der Restmüll am Freitag.'],
    ['de-miete', 'Frau Özdemir aus dem dritten Stock nimmt Pakete an, wenn ich nicht da bin.'],
    ['de-heizung', 'Die Heizung pfeift, der Installateur kommt am Montag zwischen acht und zehn.'],
    ['de-wlan', 'Das WLAN heißt Waldkauz5G, das Gästenetz Waldkauz-Gast.'],
  ]),
  ...session('Deutschkurs', '2025-04-10T18:00Z', [
    ['de-kurs-1', 'Die Prüfung für das Zertifikat B2 ist am 28. Juni in der Volkshochschule.'],
    ['de-kurs-2', 'Unsere Lehrerin, Frau Krüger, verschickt die Hausaufgaben immer sonntags.'],
    ['de-kurs-3', 'Ich verwechsle noch den Konjunktiv mit dem Präteritum.'],
    ['de-kurs-4', 'Für die mündliche Prüfung übe ich mit Anouk jeden Mittwoch im Café Größenwahn.'],
  ]),
  ...session('', '2025-02-15T12:00Z', [
    ['de-arzt', 'Die Hautärztin hat mir eine Salbe mit Zink verschrieben.'],
    ['de-rad', 'Mein Fahrrad steht bei der Werkstatt am Südbahnhof, neue Bremsbeläge.'],
    ['de-steuer', 'Die Steuererklärung muss bis zum 31. Juli abgegeben sein.'],
    ['de-brot', 'Am liebsten esse ich Roggenbrot mit Sauerteig, nie mit Kümmel.', { type: 'preference' }],
    ['de-oper', 'Im November gehe ich mit Anouk in die Zauberflöte, zweiter Rang.'],
    ['de-garten', 'Im Schrebergarten habe ich Kürbisse und Mangold gesät.'],
    ['en-thesis', 'My thesis is about the acoustics of timber concert halls.'],
    ['en-supervisor', 'My supervisor wants the second chapter by the end of May.'],
  ]),
];

type Asked = readonly [query: string, expected: readonly string[], reason: string];

function asks(userId: string, questions: readonly Asked[]): OwnQuestion[] {
  return questions.map(([query, expected, reason]) => ({
    userId,
    query,
    relevant: new Set(expected),
    category: expected.length === 0 ? 'no answer' : 'answer',
    reason,
  }));
}

/**
 * A small evaluation set, written for this project: what three invented people told their agents. Nora chats with her
 * friends Ivo and Tessa, Rafael keeps notes of his work on a payment service, Mei writes in Chinese and German. Facts
 * change, and different people have similar ones. Some questions have no answer in the set, although many of their
 * words occur in it.
 */
export const OWN_SET: OwnSet = {
  name: 'own',
  users: [
    { userId: 'nora', memories: NORA },
    { userId: 'rafael', memories: RAFAEL },
    { userId: 'mei', memories: MEI },
  ],
  questions: [
    ...asks('nora', [
      ['When is Tessa’s birthday?', ['tessa-birthday'], 'three birthdays; the name decides'],
      ['What is Ivo allergic to?', ['ivo-allergy'], 'three allergies; the name decides'],
      ['Is Ruben allergic to anything?', ['ruben-allergy'], 'three allergies; the name decides'],
      ['What is my address?', ['new-address'], 'the old one is superseded'],
      ['Do I still live in Linden Street?', ['new-address'], 'names the old address, which leads to the new one'],
      ['What do I work as?', ['new-job'], 'the old job is superseded'],
      ['What are the cats called?', ['cat-1'], 'both names stand there'],
      ['Which cat is grey?', ['cat-3'], 'says who is who'],
      ['When does Pixel have to see the vet?', ['cat-6'], 'the date and the vet'],
      [
        'Where does the pottery course take place?',
        ['pot-6'],
        'place, day and hour; pottery is said only in the question before',
      ],
      ['Which glaze did Nora use for her bowl?', ['pot-4'], 'the answer to the question about the glaze'],
      ['Why can Tessa not come on Thursdays?', ['pot-7'], 'her choir nights'],
      ['What kind of tea does Nora like?', ['hike-6'], 'bergamot, no hibiscus'],
      ['Which bus does Nora take to the ridge walk?', ['hike-4'], 'the 8:40 bus'],
      ['What is wrong with Nora’s knee?', ['after-1'], 'the strained ligament'],
      ['How many weeks without running?', ['after-3'], 'three weeks'],
      ['On which day does Ivo go swimming in the pool?', ['after-4'], 'Wednesdays'],
      ['Where does Ruben work?', ['hike-7'], 'the fire brigade'],
      ['Who bakes the wedding cake?', ['wed-5'], 'the aunt answers a question about the cake'],
      ['When and where does Lena get married?', ['wed-1'], 'September, a farm'],
      ['What colour is the dress for the wedding?', ['wed-3'], 'dark green'],
      ['Who bought the electric guitar?', ['gui-1', 'gui-3'], 'sold, and to whom'],
      ['window seat or aisle on the train?', ['pref-seat'], 'a preference'],
      ['dentist appointment', ['dentist'], 'two words, both there'],
      ['When does the passport expire?', ['passport'], 'runs out, in other words'],
      ['What did Nora pay for the concert tickets?', [], 'no concert is mentioned'],
      ['When does Ivo’s train to Vienna leave?', [], 'trains and Ivo are known, Vienna is not'],
      ['What is the name of Nora’s landlord?', [], 'addresses are known, a landlord is not'],
      ['Which university did the lawyer attend?', [], 'nothing of it'],
      ['How much horsepower has the tractor?', [], 'nothing of it'],
      ['What is the blood type of the surgeon?', [], 'nothing of it'],
    ]),
    ...asks('rafael', [
      ['On which port does the staging database listen?', ['port-staging'], 'two databases; staging decides'],
      ['production database port', ['port-production'], 'two databases; production decides'],
      ['What does PAY-5031 mean?', ['inc-1'], 'the error code as one identifier'],
      ['Why were payments down?', ['inc-2', 'inc-1'], 'the cause follows the outage in the same session'],
      ['How was the expired certificate renewed?', ['inc-3'], 'the command'],
      ['iban.ts', ['parse-iban'], 'a file by its name'],
      ['Where is formatIban defined?', ['format-iban'], 'camelCase, and where'],
      ['What was user_name renamed to?', ['user-name'], 'snake_case asks, camelCase is stored'],
      ['fx-rates.yaml', ['path-config'], 'the last part of a path'],
      ['/var/log/settle', ['path-logs'], 'the first part of a path'],
      ['Which Node version do the services run on?', ['new-node'], 'Node 20 is superseded'],
      ['When do we deploy to production?', ['new-deploy'], 'Wednesdays are superseded'],
      ['Does staging need an approval to deploy?', ['deploy-staging'], 'staging, not production'],
      ['Which feature flag must not be turned off?', ['flag-ledger'], 'two flags; the warning decides'],
      ['checkout.v3', ['flag-newcheckout'], 'a dotted name'],
      ['How are webhooks signed?', ['webhook'], 'HMAC in a header'],
      ['status 428', ['idempotency'], 'a number that stands once'],
      ['Who is on call in even weeks?', ['oncall-jonas'], 'odd and even differ by one word'],
      ['Olga emergency phone number', ['phone-olga'], 'two phones; the name decides'],
      ['retryWithBackoff', ['rev-1'], 'a function by its name'],
      ['What did Jonas change after the review?', ['rev-2'], 'the sleep moves out of the transaction'],
      ['How often does Bluebird Books get paid?', ['merchant-a'], 'two merchants whose names look alike'],
      ['In which language is the risk engine written?', ['c++'], 'C++, not C#'],
      ['C#', ['csharp'], 'an identifier of two characters'],
      ['"smallest unit"', ['rounding'], 'a phrase in quotes'],
      ['How long did the restore take?', ['restore'], 'restored, not backed up'],
      ['vault agent socket', ['secret'], 'three words'],
      ['Which wine goes with the risotto?', [], 'nothing of it'],
      ['What does error PAY-7777 mean?', [], 'another code than the one that is known'],
      ['When was the Kafka cluster upgraded?', [], 'there is no Kafka here'],
      ['Who won the chess tournament?', [], 'nothing of it'],
      ['quantum entanglement of photons', [], 'nothing of it'],
      ['How tall is the giraffe in the zoo?', [], 'nothing of it'],
    ]),
    ...asks('mei', [
      ['妈妈什么时候做手术?', ['zh-mother'], 'mother, operation'],
      ['李静的生日是哪天?', ['zh-birthday-li'], 'two birthdays in October; the name decides'],
      ['王磊喜欢什么礼物?', ['zh-birthday-wang'], 'the gift stands with his birthday'],
      ['弟弟读什么专业?', ['zh-brother'], 'physics in Nanjing'],
      ['房租现在是多少?', ['zh-rent'], 'the rent from April on'],
      ['我的手机号尾号', ['zh-new-phone'], 'the old number is superseded'],
      ['谁负责买火车票?', ['zh-trip-3'], 'Wang Lei buys the tickets'],
      ['成都的火锅店叫什么?', ['zh-hotpot'], 'the name of the restaurant'],
      ['聚餐不能点什么?', ['zh-allergy'], 'the shrimp allergy says what not to order'],
      ['茉莉多久浇一次水?', ['zh-plant'], 'both plants in one memory'],
      ['Wo ist der Kellerschlüssel?', ['de-keller'], 'a compound noun'],
      ['Wann wird die Papiertonne geleert?', ['de-muell'], 'paper, not the rest'],
      ['Wer nimmt meine Pakete an?', ['de-miete'], 'the neighbour'],
      ['Wann ist die B2 Pruefung?', ['de-kurs-1'], 'an umlaut written as two letters, and B2'],
      ['Cafe Groessenwahn', ['de-kurs-4'], 'umlaut and ß written out, accent left off'],
      ['Bis wann muss die Steuererklärung fertig sein?', ['de-steuer'], 'the 31st of July'],
      ['Name des WLAN', ['de-wlan'], 'the network'],
      ['thesis topic', ['en-thesis'], 'English among the others'],
      ['What did I sow in the garden?', ['de-garten'], 'asked in English, stored in German: hard without a model'],
      ['护照号码是多少?', [], 'no passport is mentioned'],
      ['猫粮放在哪里?', [], 'there is no cat'],
      ['Wie heißt der Bürgermeister von Bremen?', [], 'nothing of it'],
      ['Welche Farbe hat das Motorboot?', [], 'there is no boat'],
      ['recipe for blueberry pancakes', [], 'nothing of it'],
    ]),
  ],
};
