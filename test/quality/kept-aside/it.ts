import type { LanguageSet } from '../languages/language-set.ts';

/** The notes and questions of an Italian-speaking user; `all.ts` says what they are for. */
export const ITALIAN: LanguageSet = {
  language: 'it',
  memories: [
    ['dentist', 'Appuntamento dal dentista martedì 14 alle 9.30, il dottor Lemma mette una corona.'],
    ['rent', 'L’affitto è di 940 euro, addebitato il 3 del mese. La signora Rossi chiede tre mesi di preavviso.'],
    ['wifi', 'Wifi della baita: rete Marmotta, la password è abete-27-polenta.'],
    ['cat', 'La nostra gatta Cannella è diabetica: un’iniezione di insulina mattina e sera, dopo il pasto.'],
    ['allergy', 'Mio nipote Ugo è gravemente allergico alle nocciole e agli anacardi; le arachidi vanno bene.'],
    ['seat', 'In treno voglio sempre un posto vicino al finestrino, nel senso di marcia, lontano dai bagni.'],
    ['coffee', 'Bevo un solo caffè al mattino, con latte d’avena, e niente di eccitante dopo mezzogiorno.'],
    ['move', 'Mia sorella Elisa si è trasferita a Genova a febbraio, ha preso in affitto un bilocale vicino al porto.'],
    ['wedding', 'Chiara e Samir si sposano il 21 giugno nella limonaia. Abiti chiari, ma niente bianco.'],
    ['car', 'La macchina ha passato la revisione, ma le pastiglie dei freni vanno cambiate prima dell’inverno.'],
    ['bike', 'La bicicletta è da Pedali & Figli per una catena nuova, si ritira venerdì dopo le 16.'],
    ['race', 'Iscritta alla mezza maratona di Trento a maggio. Allenamento martedì, giovedì e un lungo la domenica.'],
    [
      'knee',
      'Il fisioterapista vuole tre serie da dodici piegamenti ogni sera per il ginocchio sinistro, niente corsa fino ad aprile.',
    ],
    ['school', 'Ines è in quarta elementare, il suo maestro è il signor Galli, e il lunedì le serve il flauto.'],
    [
      'backup',
      'Il salvataggio del database gira ogni notte alle 2 e viene conservato trenta giorni sulla macchina airone.',
    ],
    ['deploy', 'Non si va mai in produzione il venerdì dopo le 15, a meno che Sonia non dia il suo consenso.'],
    [
      'client',
      'La ditta Belvaso vuole i numeri in un semplice foglio di calcolo, senza diapositive, due giorni prima della riunione.',
    ],
    ['drill', 'Ad agosto ho prestato il trapano a Gherardo del numero 9. Non l’ha ancora riportato.'],
    ['grandma', 'La nonna compie 90 anni l’8 novembre, pranzo per trenta alla locanda. Della torta si occupa Lucia.'],
    ['alarm', 'Il codice dell’allarme del laboratorio è 6630, ci sono trenta secondi prima della sirena.'],
    [
      'sourdough',
      'Il lievito madre è un impasto di farina e acqua in cui vivono lieviti selvatici. In frigo si rinfresca una volta alla settimana. Quando è maturo galleggia nell’acqua.',
    ],
    [
      'glacier',
      'Un ghiacciaio nasce quando la neve si compatta anno dopo anno fino a diventare ghiaccio azzurro. I detriti lasciati ai lati si chiamano morene.',
    ],
    [
      'bees',
      'Un alveare conta cinquantamila operaie in estate. La bottinatrice indica il nettare alle sorelle con una danza.',
    ],
    [
      'harp',
      'L’arpa da concerto ha quarantasette corde e sette pedali. Le corde del do sono rosse, quelle del fa nere. Il mignolo non si usa mai.',
    ],
    [
      'volcano',
      'La fenditura del Laki, in Islanda, eruttò nel giugno 1783 e uccise metà del bestiame dell’isola con il fluoro che sprigionò.',
    ],
    [
      'lighthouse',
      'Il faro di Capo Verzo fu costruito nel 1846 dall’ingegnere Ivo Tancredi. La lampada bruciò olio di colza fino all’arrivo del petrolio nel 1875.',
    ],
    [
      'canal',
      'Il canale di Verdolo serviva a trasportare la calce. Le chiatte erano trainate da muli, che mangiavano meno dei cavalli.',
    ],
    [
      'heat-pump',
      'Una pompa di calore fornisce da tre a quattro kilowattora di calore per ogni kilowattora di elettricità che consuma.',
    ],
    [
      'novelist',
      'Adele Morvani, nata a Savona nel 1884, vide il suo primo romanzo rifiutato da undici editori. Scriveva in piedi e bruciava le bozze.',
    ],
    [
      'observatory',
      'L’osservatorio di monte Peloso aprì nel 1911 grazie al patrimonio lasciato dal birraio Emilio Lamberti.',
    ],
    [
      'migraine',
      'L’emicrania è un mal di testa, spesso da un solo lato, che dura da quattro ore a tre giorni e peggiora muovendosi.',
    ],
    ['tea', 'Hannah beve il tè forte, con una goccia di latte e due zollette. Mai al bergamotto.'],
  ],
  questions: [
    ['Chi mi cura i denti martedì?', ['dentist']],
    ['Quanto si paga alla signora Rossi ogni mese?', ['rent']],
    ['Come mi collego a internet nella baita?', ['wifi']],
    ['Che malattia ha Cannella?', ['cat']],
    ['Quale frutta secca deve evitare Ugo?', ['allergy']],
    ['Dove devo sedermi in carrozza?', ['seat']],
    ['In che città abita adesso Elisa?', ['move']],
    ['Di che colore non ci si deve vestire al matrimonio di Chiara?', ['wedding']],
    ['Che cosa bisogna sostituire sull’auto prima del freddo?', ['car']],
    ['Quando posso andare a prendere la bici?', ['bike']],
    ['Quali esercizi devo fare per le mie ginocchia?', ['knee']],
    ['Chi è l’insegnante di Ines?', ['school']],
    ['Per quanto tempo si conservano i salvataggi?', ['backup']],
    ['Chi deve approvare un rilascio tardivo di venerdì?', ['deploy']],
    ['Chi ha preso in prestito il mio trapano?', ['drill']],
    ['Come faccio a sapere se il lievito madre è pronto?', ['sourdough']],
    ['Come si chiamano i detriti ai bordi dei ghiacciai?', ['glacier']],
    ['Quali animali tiravano le barche sul canale di Verdolo?', ['canal']],
    ['Che cosa illuminava in origine il faro di Capo Verzo?', ['lighthouse']],
    [
      'Mi hanno parlato di una scrittrice ligure. Quante case editrici respinsero il primo libro di Adele Morvani?',
      ['novelist'],
    ],
  ],
  unanswerable: [
    'Quanto è alta la torre Eiffel?',
    'Qual è la valuta della Mongolia?',
    'Come si muove il cavallo negli scacchi?',
    'Che numero di scarpe porto?',
    'Chi ha dipinto la Notte stellata?',
    'Quando scade la mia assicurazione sulla vita?',
    'Che cosa conservano i cammelli nelle gobbe?',
    'Dove è nato il tango?',
    'In quale studio legale lavora mio cugino?',
    'Qual è il grado più alto di un lottatore di sumo?',
  ],
};
