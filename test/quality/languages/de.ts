import type { LanguageSet } from './language-set.ts';

/** A radio editor in Swabia keeps texts from her research on many subjects, and notes about her days. */
export const GERMAN: LanguageSet = {
  language: 'de',
  memories: [
    [
      'abbey-marienfurt',
      'Das Kloster Marienfurt wurde 1138 von der Gräfin Adelheid von Sulmgau gestiftet und mit Zisterziensern aus dem Elsass besetzt. Die Mönche legten elf Fischteiche an, von denen vier bis heute bewirtschaftet werden. Im Bauernkrieg brannte die Bibliothek nieder, nur ein Psalter blieb erhalten, weil ihn der Bruder Kellermeister in einem Weinfass versteckt hatte. Nach der Aufhebung 1803 diente die Anlage als Tuchfabrik. Seit 1976 finden im Kreuzgang jeden Sommer Orgelkonzerte statt.',
    ],
    [
      'abbey-hohenwang',
      'Die Benediktinerinnenabtei Hohenwang liegt auf einem Felssporn über der Lauter und geht auf eine Einsiedelei des neunten Jahrhunderts zurück. Ihre Kirche erhielt zwischen 1731 und 1744 eine barocke Ausstattung; das Deckengemälde schuf der Tiroler Johann Evangelist Prantl. Achtzehn Schwestern leben noch dort. Sie verdienen ihren Unterhalt mit einer Hostienbäckerei, einem Gästehaus und einer Werkstatt für alte Einbände. Für Besucher ist der Kräutergarten mittwochs und samstags zugänglich.',
    ],
    [
      'club-turnverein',
      'Der Turn- und Sportverein Eckberg ging 1894 aus einem Männerturnverein hervor und zählt heute 3.400 Mitglieder in neunzehn Abteilungen. Am erfolgreichsten sind die Handballerinnen, die 1987 deutsche Meisterinnen wurden und im Jahr darauf im Europapokal das Halbfinale erreichten. Trainer war damals der gelernte Bäcker Winfried Stoll. Die Heimspiele finden in der Kelterhalle vor höchstens 1.850 Zuschauern statt. Seit 2014 bietet der Verein eine Rollstuhlsportgruppe an.',
    ],
    [
      'club-rudern',
      'Der Ruderclub Nixe Talheim besteht seit 1909 und hat sein Bootshaus am linken Neckarufer. Frauen durften erst ab 1953 Mitglied werden; schon zwei Jahre später gewann Gerda Lautenschlager im Einer die süddeutsche Meisterschaft. Das älteste Boot der Flotte, ein Achter aus Zedernholz namens Fährmann, stammt aus dem Jahr 1924. Beim Hochwasser von 2013 stand das Wasser in der Halle 1,60 Meter hoch. Jeden ersten Samstag im Mai wird angerudert.',
    ],
    [
      'lyme',
      'Die Lyme-Borreliose wird von Bakterien verursacht, die Zecken beim Blutsaugen übertragen. Ein frühes Zeichen ist die Wanderröte, ein Ring, der sich einige Tage bis Wochen nach dem Stich langsam ausbreitet. Je länger das Tier saugt, desto größer ist das Risiko; meist vergehen mindestens zwölf Stunden. Behandelt wird mit dem Antibiotikum Doxycyclin. Eine Impfung für Menschen gibt es bislang nicht. Bleibt die Krankheit unerkannt, können Gelenke und Nerven Schaden nehmen.',
    ],
    [
      'tbe',
      'Die Frühsommer-Meningoenzephalitis, kurz FSME, ist eine Virusinfektion, die ebenfalls durch Zeckenstiche übertragen wird. Weil sich die Erreger in den Speicheldrüsen befinden, gelangen sie sofort nach dem Stich ins Blut. Etwa jeder dritte Angesteckte erkrankt; bei ihm folgt auf eine Grippe oft eine Entzündung von Hirnhaut und Gehirn. Gegen das Virus selbst gibt es kein Mittel, wohl aber einen Impfstoff mit drei Dosen. Risikogebiete sind vor allem Bayern und Baden-Württemberg.',
    ],
    [
      'organ-builder',
      'Der Orgelbauer Matthäus Wieland aus Ulm schuf zwischen 1698 und 1740 siebenundvierzig Instrumente, von denen dreizehn noch spielbar sind. Sein Hauptwerk steht in der Stadtkirche von Neckarbronn und besitzt 38 Register auf drei Manualen. Für die größten Pfeifen verwendete er Fichte, für die kleinen eine Legierung aus Zinn und Blei. Um Mäuse fernzuhalten, mischte er Wermut in den Leim. Seine Werkstatt übernahm nach seinem Tod die Witwe Barbara.',
    ],
    [
      'violin-maker',
      'Die Geigenbauerin Leonore Amsinck eröffnete 1956 in Mittenwald als erste Frau eine eigene Werkstatt. Sie verwendete Bergfichte für die Decke und Ahorn vom Balkan für den Boden und ließ das Holz mindestens acht Jahre trocknen. Ein Instrument brauchte etwa zweihundert Arbeitsstunden. Ihre Lackrezeptur, in die auch Leinöl und Bernstein gehören, hat sie nie aufgeschrieben, sondern nur zwei Lehrlingen mündlich weitergegeben. Sie starb 2003.',
    ],
    [
      'spaetzle',
      'Spätzle sind eine schwäbische Eierteigware. Auf fünfhundert Gramm Mehl kommen fünf Eier, Salz und etwas Mineralwasser; der Teig wird so lange geschlagen, bis er Blasen wirft. Früher schabte man ihn von einem Holzbrett in kochendes Wasser, heute nehmen viele eine Presse oder einen Hobel. Sobald sie oben schwimmen, sind sie gar. Zum Käsegericht schichtet man sie mit Bergkäse und gerösteten Zwiebeln. Reste schmecken am nächsten Tag in Butter gebraten.',
    ],
    [
      'maultaschen',
      'Maultaschen bestehen aus Nudelteig mit einer Füllung aus Brät, Spinat, eingeweichtem Brot und Zwiebeln. Man isst sie in der Brühe oder geschnitten und mit Ei in der Pfanne geröstet. Einer Legende nach erfanden die Mönche von Maulbronn das Gericht, um in der Fastenzeit das Fleisch vor Gottes Augen zu verstecken, daher der Spottname Herrgottsbescheißerle. Seit 2009 ist die Bezeichnung als geschützte geografische Angabe eingetragen. Traditionell kommen sie am Gründonnerstag auf den Tisch.',
    ],
    [
      'swift',
      'Mauersegler verbringen fast ihr gesamtes Leben in der Luft: Sie fressen, trinken, paaren sich und schlafen sogar im Flug, und sie landen nur, um zu brüten. Ein Jungvogel kann nach dem Ausfliegen zwei bis drei Jahre ohne Pause unterwegs sein. In Mitteleuropa bleiben sie nur etwa hundert Tage, von Anfang Mai bis Anfang August, danach ziehen sie nach Afrika südlich der Sahara. Bei kaltem Wetter fallen die Nestlinge in eine Starre.',
    ],
    [
      'bat',
      'Fledermäuse orientieren sich im Dunkeln mit Ultraschall: Sie stoßen Rufe durch Mund oder Nase aus und werten das Echo aus. Die Zwergfledermaus wiegt kaum fünf Gramm und vertilgt pro Nacht bis zu zweitausend Mücken. Im Winter hängen die Tiere kopfüber in Stollen und senken ihren Herzschlag von sechshundert auf etwa zwanzig Schläge pro Minute. Wer sie dabei weckt, kostet sie wertvolles Fett. Alle Arten sind in Deutschland streng geschützt.',
    ],
    [
      'karst',
      'Die Schwäbische Alb besteht größtenteils aus Kalkstein, den Regenwasser über Jahrtausende auflöst. So entstehen Höhlen, Trockentäler und Dolinen, in denen Bäche plötzlich verschwinden. Die Donau versickert bei Immendingen an über hundertfünfzig Tagen im Jahr vollständig und tritt zwölf Kilometer weiter im Aachtopf wieder zutage. Das Wasser braucht dafür rund sechzig Stunden. Nachgewiesen wurde der Weg 1877, als ein Forscher Salz und Farbstoff in die Versickerung gab.',
    ],
    [
      'moor',
      'Hochmoore speisen sich allein aus Regen und wachsen nur etwa einen Millimeter im Jahr. Torfmoose saugen das Wasser auf wie ein Schwamm und machen es sauer, sodass abgestorbene Pflanzen nicht verrotten. Moore bedecken drei Prozent der Landfläche der Erde, speichern aber doppelt so viel Kohlenstoff wie alle Wälder. Entwässert man sie, entweicht Kohlendioxid. Im Donaumoos staut man seit 2011 Gräben wieder an, und der Kiebitz ist zurückgekehrt.',
    ],
    [
      'law-neighbour',
      'Das Nachbarrecht in Baden-Württemberg schreibt vor, dass Hecken bis 1,80 Meter Höhe einen halben Meter Abstand zur Grenze halten müssen. Bäume, die höher wachsen, stehen je nach Art zwei bis acht Meter entfernt. Überhängende Äste darf der Nachbar erst abschneiden, wenn er dem Eigentümer eine angemessene Frist gesetzt hat und diese verstrichen ist. Herabgefallene Früchte gehören dem, auf dessen Grundstück sie liegen. Streit schlichtet oft das Gemeindeamt.',
    ],
    [
      'law-warranty',
      'Beim Kauf neuer Ware gilt in Deutschland eine gesetzliche Gewährleistung von zwei Jahren. Zeigt sich ein Mangel innerhalb der ersten zwölf Monate, wird vermutet, dass er von Anfang an da war; danach muss der Käufer es beweisen. Der Kunde darf zunächst zwischen Reparatur und Ersatz wählen. Erst wenn das zweimal scheitert, kann er vom Vertrag zurücktreten. Die Garantie ist hingegen eine freiwillige Zusage des Herstellers und nicht dasselbe.',
    ],
    [
      'clockmaking',
      'Die Schwarzwälder Kuckucksuhr entstand um 1730 in Schönwald. Zwei kleine Blasebälge erzeugen den Ruf, den der Uhrmacher Franz Anton Ketterer angeblich dem Orgelspiel abschaute. Angetrieben wird das Werk durch Gewichte in Form von Tannenzapfen. Das bekannte Bahnhäusle-Gehäuse entwarf 1850 Friedrich Eisenlohr, Professor in Karlsruhe, in Anlehnung an ein Bahnwärterhaus. Eine echte Schwarzwalduhr darf nur so heißen, wenn alle wesentlichen Teile aus der Region stammen.',
    ],
    [
      'savings-bank',
      'Die Sparkasse in Deutschland geht auf das frühe neunzehnte Jahrhundert zurück; die erste kommunale öffnete 1801 in Göttingen. Sie sollte Dienstboten und Handwerkern erlauben, kleine Beträge sicher anzulegen. Träger sind Städte und Landkreise, weshalb ein Teil des Gewinns in Kultur und Sport fließt. Sie dürfen nur in ihrem eigenen Gebiet werben. Der Weltspartag Ende Oktober, an dem Kinder ihre Büchse leeren, wurde 1925 eingeführt.',
    ],
    [
      'inflation-1923',
      'In der Hyperinflation von 1923 verlor die deutsche Mark fast ihren ganzen Wert. Im November kostete ein Kilo Brot rund zweihundert Milliarden. Auslöser war die Gelddruckpolitik, mit der die Regierung den Widerstand im besetzten Ruhrgebiet bezahlte. Löhne wurden zweimal am Tag ausgezahlt und im Wäschekorb nach Hause getragen. Am 15. November kam die Rentenmark, eine Billion Papiermark wurde gegen eine getauscht. Sparer verloren alles, Schuldner waren frei.',
    ],
    [
      'cable-car',
      'Die Standseilbahn am Hochfels fährt seit 1908 auf einer Länge von 516 Metern und überwindet dabei 143 Höhenmeter. Beide Wagen hängen an einem Seil und gleichen ihr Gewicht gegenseitig aus. Ursprünglich sorgte ein Wasserbehälter im oberen Wagen für den Antrieb, 1949 wurde auf Strom umgestellt. Die Fahrt dauert vier Minuten. Wegen Seilschäden stand der Betrieb 2018 sieben Monate still. Das obere Stationshaus beherbergt ein Café mit Blick bis zu den Alpen.',
    ],
    [
      'viaduct',
      'Der Eschenbachviadukt wurde von 1858 bis 1861 aus rotem Sandstein errichtet und trägt noch heute die Hauptbahn. Neun Bögen überspannen das Tal auf 340 Metern Länge, der höchste Pfeiler misst 41 Meter. Leiter der Bauarbeiten war der Ingenieur Karl Etzel, der später die Brennerbahn plante. 1945 sprengten Soldaten zwei Pfeiler, doch die Bahn fuhr nach sechs Monaten über eine hölzerne Behelfskonstruktion. Im Sommer nisten Dohlen in den Fugen.',
    ],
    [
      'book-printing',
      'Johannes Gutenberg entwickelte um 1450 in Mainz den Druck mit beweglichen Lettern aus einer Legierung von Blei, Zinn und Antimon. Sein größtes Werk ist eine zweispaltige Bibel mit 42 Zeilen je Seite, von der etwa 180 Exemplare entstanden; 49 sind noch bekannt. Geldgeber war der Kaufmann Johannes Fust, der ihn 1455 vor Gericht zog und die Werkstatt übernahm. Der Drucker Peter Schöffer führte sie weiter und heiratete Fusts Tochter.',
    ],
    [
      'salt-mine',
      'Im Salzbergwerk Bad Friedrichshall wird seit 1899 in hundertachtzig Metern Tiefe Steinsalz abgebaut, das vor über zweihundert Millionen Jahren aus einem Flachmeer entstand. Sprengungen finden nachts statt, damit tagsüber Fahrzeuge die Brocken zur Brechanlage bringen können. Die Temperatur bleibt im Sommer wie im Winter bei achtzehn Grad. Besucher fahren mit dem Korb in dreißig Sekunden hinunter und rutschen im Innern über eine vierzig Meter lange Holzrutsche. Das meiste Salz streut man auf winterliche Straßen.',
    ],
    [
      'wine',
      'Der Trollinger ist eine rote Rebsorte, die fast ausschließlich in Württemberg wächst und dort als Tafelwein beliebt ist. Sein Name kommt wohl von Tirolinger, also aus Tirol. Weil er spät reift, braucht er warme Steillagen am Neckar, wo die Winzer alles von Hand lesen. Der Wein ist hellrot, leicht und hat wenig Gerbstoff. Man trinkt ihn gern kühl aus einem Viertelesglas mit Henkel zu deftiger Vesper.',
    ],
    [
      'sourdough',
      'Für einen Roggensauerteig verrührt man Mehl und lauwarmes Wasser und lässt die Mischung fünf Tage an einem warmen Platz stehen, wobei man täglich etwas nachgibt. Wilde Hefen sorgen für die Blasen, Milchsäurebakterien für den Geschmack. Roggen braucht die Säure, da seine Enzyme sonst die Stärke abbauen und die Krume klebrig wird. Das fertige Anstellgut hält sich im Kühlschrank eine Woche, danach muss es gefüttert werden.',
    ],
    [
      'vaccination',
      'Die Pockenschutzimpfung wurde im Deutschen Reich durch das Gesetz von 1874 zur Pflicht. Kinder mussten sie vor Ablauf des zweiten Lebensjahres und nochmals mit zwölf erhalten. Eltern, die sich weigerten, zahlten Bußgeld oder wurden für drei Tage inhaftiert. Der württembergische Arzt Max Wieland sammelte Unterschriften dagegen, doch die Sterblichkeit sank so deutlich, dass der Widerstand nachließ. Aufgehoben wurde der Zwang in der Bundesrepublik erst 1976.',
    ],
    [
      'marathon',
      'Der Albtraufmarathon führt seit 1993 jedes Jahr am zweiten Sonntag im September über 42,195 Kilometer und 1.100 Höhenmeter. Er startet am Marktplatz von Dettweiler und endet auf dem Burghof. Den Streckenrekord von 2:48:17 hält seit 2011 die Tierärztin Frauke Ostermann; kein Mann war bisher schneller. Verpflegt wird alle fünf Kilometer, am Anstieg zur Teufelskanzel gibt es Hefezopf. Die Anmeldung ist auf 1.200 Personen begrenzt.',
    ],
    [
      'chess',
      'Der Schachautomat des Wolfgang von Kempelen, 1769 für Kaiserin Maria Theresia gebaut, zeigte einen türkisch gekleideten Spieler an einem Kasten. In Wahrheit saß ein Mensch darin, der die Züge auf einem kleinen Steckbrett mitverfolgte und eine Kerze als Licht benutzte; den Rauch leitete ein Turban ab. Napoleon verlor 1809 gegen die Figur. Sie verbrannte 1854 bei einem Brand in Philadelphia. Im heutigen Deutsch erinnert daran das Wort getürkt.',
    ],
    [
      'glacier',
      'Gletscher entstehen, wo im Winter mehr Schnee fällt, als im Sommer schmilzt. Unter dem Druck der Schichten wird er erst zu Firn und nach Jahren zu Eis, das talwärts fließt, am Aletsch bis zu zweihundert Meter im Jahr. Dabei schleift es Täler zu einem U. Was am Rand liegen bleibt, nennt man Moräne. Der Schneeferner an der Zugspitze verlor 2022 den Status eines Gletschers, weil er sich nicht mehr bewegt.',
    ],
    [
      'solar',
      'Eine Photovoltaikanlage mit zehn Kilowatt Leistung liefert in Süddeutschland etwa zehntausend Kilowattstunden im Jahr. Rund ein Drittel verbraucht eine Familie selbst, mit einem Speicher sind es zwei Drittel; den Rest speist sie ins Netz ein und erhält dafür eine über zwanzig Jahre feste Vergütung. Nach Norden gerichtete Dächer bringen etwa vierzig Prozent weniger. Die Module halten über dreißig Jahre, der Wechselrichter muss meist nach fünfzehn ersetzt werden.',
    ],

    ['note-coffee', 'Kaffee trinke ich nur mit Hafermilch, Kuhmilch vertrage ich seit letztem Jahr nicht mehr.'],
    ['note-dentist', 'Zahnarzttermin Mi 12.11. um 8:15 bei Dr. Pfisterer, Krone links oben einsetzen'],
    ['note-sister', 'Meine Schwester Kathrin ist Hebamme in Konstanz und bekommt im Februar selbst Nachwuchs.'],
    ['note-train', 'Im Zug sitze ich gern im Ruhebereich, am Gang, wenn möglich mit Tisch und Steckdose.'],
    [
      'note-deadline',
      'Die Folge über die Torfmoose muss bis 21. Mai im Schnitt sein, der Sendeplatz ist Samstagabend.',
    ],
    [
      'note-husband',
      'Roland hat die Werkstatt von seinem Onkel übernommen, die Hobelmaschine ist aber schon dreißig Jahre alt.',
    ],
    ['note-tone', 'Schreib mir Antworten bitte immer knapp und ohne Floskeln, Duzen ist völlig in Ordnung.'],
    [
      'note-archive',
      'Aufnahmen von 2021 liegen jetzt auf dem Archivserver unter Ordner 7, die alten Platten gehen zurück an Ingrid',
    ],
    ['note-allergy', 'Unser Sohn Jonas hat eine Haselnussallergie, das Notfallset liegt im roten Beutel im Flur.'],
    ['note-school', 'Ab nächster Woche beginnt die Schule von Jonas erst um 8.50 Uhr, donnerstags hat er Schwimmen.'],
    ['note-car', 'TÜV fürs Auto ist im Oktober fällig, die Bremsbeläge hinten will Herr Schaal gleich mitmachen.'],
    [
      'note-landlord',
      'Der Vermieter Herr Knoll will die Heizung tauschen, vom 4. bis 6. März haben wir kein warmes Wasser.',
    ],
    [
      'note-anniversary',
      'Zum Hochzeitstag am 19. Juli habe ich im Landgasthof Adler einen Tisch für zwei um 19 Uhr reserviert.',
    ],
    ['note-intern', 'Die neue Volontärin heißt Thea Marquardt, kommt aus Oldenburg und fängt am 1. September an.'],
    [
      'note-meeting',
      'Redaktionskonferenz jetzt dienstags 9:30 statt montags, Grund: der Sender legt beide Studios zusammen',
    ],
    [
      'note-running',
      'Ich laufe dreimal pro Woche acht Kilometer am Fluss, im April will ich den Halbmarathon schaffen.',
    ],
    [
      'note-neighbour',
      'Frau Özdemir von nebenan gießt die Tomaten, wenn wir im Urlaub sind, sie hat auch den Schlüssel.',
    ],
    [
      'note-plumber',
      'Der Installateur kam gestern, das Rohr unter der Spüle ist dicht, Rechnung 214 Euro, noch nicht bezahlt.',
    ],
    ['note-book', 'Gerade lese ich den dritten Band der Inspektor-Lenz-Reihe, er ist viel besser als der zweite.'],
    ['note-wifi', 'WLAN-Passwort für Gäste steht auf der Kühlschranktür, das andere ist nur für den Sender gedacht.'],
    ['note-boss', 'Chefin Dagmar Brehm mag keine Anhänge, sie will alles als Link im Ordner Freigaben.'],
    ['note-mother', 'Mutter hat am 30. August ihren 80., das Fest ist im Gemeindesaal, ich soll den Chor organisieren'],
    ['note-bike', 'E-Bike-Akku schwächelt, Händler sagt noch ein Jahr Garantie, Laufleistung 6.200 Kilometer.'],
    ['note-cello', 'Cellounterricht bei Herrn Baranow donnerstags 18 Uhr, nächstes Stück ist eine Sonate von Vivaldi.'],
    ['note-passport', 'Reisepass läuft am 17. Januar ab, Termin beim Bürgeramt online buchen, am besten im Oktober'],
    ['note-friend', 'Meine Freundin Silke ist nach Lissabon gezogen und arbeitet dort als Tontechnikerin an der Oper.'],
    ['note-tax', 'Steuerunterlagen sind beim Berater Hutzel, er braucht noch die Fahrtkosten für das Studio in Ulm.'],
    ['note-garden', 'Im Beet hinter dem Schuppen stehen dieses Jahr Mangold und Rote Bete, keine Kartoffeln mehr.'],
    [
      'note-software',
      'Für den Tonschnitt benutzen wir künftig Reaper statt Pro Tools, die Lizenz wurde im März umgestellt.',
    ],
    ['note-film', 'Krimis ja, aber bitte nichts Brutales, und Serien nur, wenn sie höchstens sechs Folgen haben.'],
  ],
  questions: [
    ['Woher kommt Trollinger?', ['wine']],
    ['Wer baute den Viadukt?', ['viaduct']],
    ['Was ist eine Moräne?', ['glacier']],
    ['Impfung gegen Borreliose?', ['lyme']],
    ['Warum heißt es getürkt?', ['chess']],
    ['Wo wohnt Silke?', ['note-friend']],
    ['Wann ist Konferenz?', ['note-meeting']],
    ['Mutters runder Geburtstag?', ['note-mother']],

    ['Wer gründete die Zisterzienserabtei Marienfurt und wann?', ['abbey-marienfurt']],
    ['Womit bestreiten die Nonnen von Hohenwang ihren Lebensunterhalt?', ['abbey-hohenwang']],
    ['Welchen Beruf hatte der Coach der Eckberger Handballerinnen gelernt?', ['club-turnverein']],
    ['Seit wann sind in dem Talheimer Ruderverein auch Frauen zugelassen?', ['club-rudern']],
    ['Warum kann eine FSME-Ansteckung schon direkt nach einem Zeckenbiss passieren?', ['tbe']],
    ['Womit hielt der Ulmer Orgelbauer Nagetiere von seinen Instrumenten fern?', ['organ-builder']],
    ['Wie lange lagerte Frau Amsinck ihr Geigenholz?', ['violin-maker']],
    ['Woran merkt man, dass die Spätzle fertig gekocht sind?', ['spaetzle']],
    ['Wie lange halten sich Mauersegler bei uns auf?', ['swift']],
    ['Was passiert mit dem Herzen der Fledermäuse im Winterschlaf?', ['bat']],
    ['Wem gehört ein Apfel, der vom Nachbarsbaum in meinen Garten fällt?', ['law-neighbour']],
    ['Wer entwarf das Gehäuse der Kuckucksuhr und was diente ihm als Vorbild?', ['clockmaking']],
    ['In welcher Stadt arbeitet Kathrin und was macht sie beruflich?', ['note-sister']],
    ['Wogegen ist Jonas allergisch und wo finde ich das Notfallset?', ['note-allergy']],
    ['Bei wem liegt unser Ersatzschlüssel, wenn wir verreisen?', ['note-neighbour']],
    ['Wie viel kostet die Reparatur des Abflussrohrs und ist sie schon beglichen?', ['note-plumber']],
    ['Was haben wir dieses Jahr im Gemüsegarten angebaut?', ['note-garden']],
    ['Welches Programm nehmen wir jetzt fürs Schneiden der Tonaufnahmen?', ['note-software']],
    ['Wie möchte Dagmar Dokumente von mir bekommen?', ['note-boss']],
    ['An welchen Tagen müssen wir ohne Warmwasser auskommen?', ['note-landlord']],

    [
      'Ich habe letzte Woche einen Fernseher gekauft, der jetzt flackert. Wie lange kann ich beim Händler Mängel geltend machen und wer muss was beweisen?',
      ['law-warranty'],
    ],
    [
      'Weshalb verschwindet bei Immendingen ein ganzer Fluss im Boden, und an welcher Stelle sowie nach wie vielen Stunden kommt das Wasser wieder heraus?',
      ['karst'],
    ],
    [
      'Was bringt es dem Klima, wenn man entwässerte Moore wieder nass werden lässt, und welcher Vogel ist im Donaumoos deshalb wieder anzutreffen?',
      ['moor'],
    ],
    [
      'Welche Bank öffnete als erste kommunale ihrer Art, in welcher Stadt war das, und für welche Leute war sie eigentlich einmal gedacht?',
      ['savings-bank'],
    ],
    [
      'Wie kam es 1923 dazu, dass das Geld praktisch nichts mehr wert war, und wie hieß die Währung, mit der man die Krise beendete?',
      ['inflation-1923'],
    ],
    [
      'Wir wollen am Wochenende mit den Kindern hinauf auf den Hochfels. Wie lange braucht die Standseilbahn nach oben und wie viele Meter steigt sie?',
      ['cable-car'],
    ],
    [
      'Was geschah Eltern im Kaiserreich, die ihre Kinder nicht gegen die Pocken impfen lassen wollten, und wann fiel die Pflicht in der Bundesrepublik weg?',
      ['vaccination'],
    ],
    [
      'Lohnt sich eine Solaranlage auf einem Norddach überhaupt, und nach wie vielen Jahren muss man normalerweise mit dem Austausch des Wechselrichters rechnen?',
      ['solar'],
    ],
    [
      'Ich plane gerade unsere Sommerreise. Bis wann ist mein Reisepass noch gültig, und wann sollte ich mich am besten um den Termin beim Amt kümmern?',
      ['note-passport'],
    ],
    [
      'Bis zu welchem Tag muss der Beitrag über die Torfmoose beim Schnitt liegen, und an welchem Wochentag soll er eigentlich ausgestrahlt werden?',
      ['note-deadline'],
    ],
    [
      'Ab Herbst kommt Verstärkung in die Redaktion. Wie heißt die neue Volontärin noch gleich, woher stammt sie und wann hat sie ihren ersten Arbeitstag?',
      ['note-intern'],
    ],
    [
      'Du schlägst mir für heute Abend etwas zum Anschauen vor: Was sehe ich gern, was auf keinen Fall, und wie lang darf eine Serie sein?',
      ['note-film'],
    ],
  ],
  unanswerable: [
    'Wie hoch ist der Eiffelturm?',
    'Wer schrieb den Roman Moby Dick?',
    'Wie viele Spieler hat ein Baseballteam?',
    'Wie schlafen Delfine?',
    'Wann habe ich den Staubsauger gekauft?',
    'Welche Sprache spricht man in Bolivien?',
    'Wie funktioniert ein Kernreaktor?',
    'Was kostet der Mitgliedsbeitrag im Fitnessstudio?',
    'Wie heißt der Hund meines Cousins?',
    'Welche Vitamine stecken in Avocados?',
    'Wie wird man in Kanada eingebürgert?',
    'Wann wurde die Berliner Mauer gebaut?',
    'Was sind die Regeln beim Curling?',
    'Welches Geschenk habe ich meinem Patenkind zur Taufe versprochen?',
    'Wie erkennt man einen Herzinfarkt bei Frauen?',
    'Wie viele Monde hat der Saturn?',
    'Worin unterscheidet sich ein Quantencomputer von einem gewöhnlichen Rechner, und wofür taugt er überhaupt?',
    'Ich möchte mit dem Tauchen anfangen. Welche Prüfungen muss ich ablegen und wie tief darf ich danach hinunter?',
    'Wie viele Elefanten leben noch in Botswana, und was tut die Regierung gegen die Wilderei?',
    'Welche Farbe hatte das Sofa, das wir uns letzten Herbst im Möbelhaus angesehen haben?',
  ],
};
