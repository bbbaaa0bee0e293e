/** Texts of questions to several tenants and servers, and of the list of servers. */
import { many } from './many.ts';

export const federated = {
  also: 'Also ask',
  tenant: (name: string) => `tenant ${name}`,
  asked: 'Who was asked',
  about:
    'All are asked at once, with the default settings of each, and their matches stand in the order of their scores. ' +
    'Profile, weights and stages are those of one store: take the others away to see them.',
  score: 'Score',
  degraded: 'Not all answered as they should. What the others found is here.',
  nothing: 'Nothing is above the floor anywhere. Lower the floor under “More settings”, or ask more of them.',
  truncated: 'Matches were left out from the end: together they are longer than an answer may be.',
  counts: (matches: number, time: string) => `${many(matches, 'match', 'matches')} in ${time}`,
  recall: 'its answer',
  outcomes: {
    answered: 'answered',
    timeout: 'too late',
    unreachable: 'not reached',
    refused: 'refused',
    invalid: 'no answer',
    failed: 'failed',
  },

  servers: {
    about:
      'Other Cairn servers that questions of this tenant may be put to, by everybody whose key reads all of it. ' +
      'Choose them under “Also ask” on the page Ask.',
    add: 'Register a server',
    emptyTitle: 'No other server is registered',
    empty: 'Register one with “Register a server”: its answers then come back beside those of this one.',
    columns: ['Name', 'Address', 'Tenant', 'Key', 'Registered', 'Remove'],
    removeTitle: 'Forget this server and its key?',
  },
  name: 'Name: a-z, 0-9, - and _',
  address: 'Address',
  addressAbout: 'https, at a public address; OM_FEDERATION_ALLOW allows others.',
  key: 'Key that it is asked with',
  keyAbout:
    'The role read is enough. Everybody here who may ask it reads what this key reads. It is kept in a sealed data ' +
    'folder only.',
  remoteTenant: 'Tenant there',
  firstTenant: 'the first of the key',
  registered: (name: string) => `${name} may be asked from now on.`,
  hasKey: 'with a key',
  noKey: 'without a key',
} as const;
