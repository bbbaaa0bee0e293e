import { createRandom } from '../../src/engine/random.ts';

/** A text about one of two topics that have few words in common, with a question that the text answers. */
export interface TopicNote {
  readonly content: string;
  readonly question: string;
}

export type Topic = 'garden' | 'servers';

interface Frame {
  readonly say: string;
  readonly ask: string;
}

const WORDS: Readonly<Record<Topic, { readonly frames: readonly Frame[]; readonly slots: readonly string[][] }>> = {
  garden: {
    frames: [
      {
        say: 'We planted A beside the B last spring and the C kept slugs away.',
        ask: 'What did we plant beside the B?',
      },
      { say: 'Grandmother swears that A only thrives when its roots get D.', ask: 'What does A need to thrive?' },
      { say: 'The A near the B caught mildew, so I sprayed it with D.', ask: 'How was the mildew on the A treated?' },
      { say: 'I pruned the A by the B after its blossoms had faded.', ask: 'When was the A pruned?' },
    ],
    slots: [
      'lavender,rhubarb,clematis,hydrangea,quince,fennel,dahlia,raspberry,wisteria,sorrel,peony,currant'.split(','),
      'greenhouse,pergola,compost heap,rain barrel,beehive,stone wall,pond,toolshed'.split(','),
      'copper tape,eggshells,a ring of sand,coffee grounds'.split(','),
      'ash water,horsetail broth,bone meal,leaf mould,nettle tea'.split(','),
    ],
  },
  servers: {
    frames: [
      { say: 'A crashed on B because the C had filled up overnight.', ask: 'Why did A crash on B?' },
      {
        say: 'We moved A from B to a bigger machine and lowered the C to D.',
        ask: 'Where did A run before it was moved?',
      },
      { say: 'The alert about A fires when the C of B exceeds D.', ask: 'When does the alert about A fire?' },
      { say: 'Deploying A to B takes D since the C is warmed first.', ask: 'How long does deploying A to B take?' },
    ],
    slots: [
      'postgres,nginx,kafka,grafana,vault,elasticsearch,jenkins,memcached,rabbitmq,prometheus,keycloak,minio'.split(
        ',',
      ),
      'frankfurt-2,staging,the edge node,oslo-7,production,the canary cluster,tokyo-1,the standby'.split(','),
      'connection pool,heap,write-ahead log,certificate cache'.split(','),
      'ninety seconds,four gigabytes,sixty percent,twelve minutes,two replicas'.split(','),
    ],
  },
};

/** Returns `count` different notes about a topic. The same seed gives the same notes. */
export function notesAbout(topic: Topic, count: number, seed = 1): TopicNote[] {
  const random = createRandom(seed);
  const { frames, slots } = WORDS[topic];
  const notes = new Map<string, TopicNote>();
  while (notes.size < count) {
    const frame = frames[Math.floor(random() * frames.length)]!;
    const fillers = slots.map((list) => list[Math.floor(random() * list.length)]!);
    const fill = (text: string) =>
      text.replaceAll(/\b[A-D]\b/g, (slot) => fillers[slot.charCodeAt(0) - 'A'.charCodeAt(0)]!);
    notes.set(fill(frame.say), { content: fill(frame.say), question: fill(frame.ask) });
  }
  return [...notes.values()];
}

/** Questions about subjects that no note of the two topics mentions. */
export const STRANGE_QUESTIONS = [
  'What is the boiling point of mercury?',
  'Who signed the treaty of Westphalia?',
  'How many moons does Neptune have?',
  'Which enzyme breaks down lactose?',
  'What chord follows a dominant seventh in jazz?',
  'Where can I renew an expired passport?',
  'When did the Byzantine empire fall?',
  'How tall is the Burj Khalifa?',
  'Who painted the ceiling of the Sistine chapel?',
  'What is the dosage of ibuprofen for toddlers?',
  'Which court ruled on the merger of the airlines?',
  'Can penguins fly over short distances?',
  'What is the recipe for miso ramen broth?',
  'Did the dentist say anything about the crown?',
  'Which telescope photographed the black hole?',
  'How is whisky matured in sherry casks?',
  'Who is the goalkeeper of the national handball team?',
  'What were the minutes of the budget committee about?',
  'Which vaccine protects against yellow fever?',
  'Where did the Titanic sink?',
] as const;
