import type { LanguageSet } from './language-set.ts';

/**
 * A curious engineer in Turkey keeps paragraphs from her reading on many subjects, and notes about family, work and
 * plans.
 */
export const TURKISH: LanguageSet = {
  language: 'tr',
  memories: [
    [
      'bridge-stone',
      "Beyköy Taş Köprüsü 1547 yılında mimar Hacı Nasuh tarafından yapıldı. Yedi kemerli köprünün uzunluğu 118 metredir ve yapımında yöreden çıkarılan sarı kireçtaşı kullanılmıştır. 1939'daki depremde iki kemeri çökmüş, onarımı ancak 1951'de tamamlanabilmiştir. Bugün yalnızca yayalara açık olan yapı, her mayıs ayında düzenlenen fener şenliğine ev sahipliği yapar. Korkuluklarında ustaların bıraktığı otuz dört imza hâlâ okunabilmektedir.",
    ],
    [
      'bridge-iron',
      "Beyköy Demir Köprüsü, kasabanın batısında demiryolu hattını vadinin üzerinden geçirmek için 1903'te inşa edildi. Projeyi Alman mühendis Otto Kessler çizdi; çelik parçalar gemiyle Samsun limanına getirildi. 204 metre uzunluğundaki köprü, Kurtuluş Savaşı sırasında bir kez havaya uçurulmuş ve altı ay içinde yeniden kurulmuştur. Yük trenleri 1988'e kadar üzerinden geçti, bugün ise bisiklet yolu olarak kullanılıyor.",
    ],
    [
      'club-demirspor',
      "Karahisar Demirspor, 1926 yılında demiryolu işçileri tarafından kurulan bir futbol kulübüdür. Renkleri lacivert ve turuncudur. Takım en büyük başarısını 1974'te Türkiye Kupası finaline çıkarak elde etti, ancak maçı uzatmalarda kaybetti. Maçlarını 9.200 kişilik İstasyon Stadı'nda oynar. Kulübün en golcü oyuncusu, on dört sezonda 163 gol atan Sabri Tekin'dir; heykeli stadın önünde durmaktadır.",
    ],
    [
      'club-idman',
      "Karahisar İdman Yurdu, kentin ikinci futbol takımıdır ve 1931'de bir grup öğretmenin girişimiyle ortaya çıkmıştır. Yeşil beyaz formasıyla tanınan kulüp, altyapısından yetişen oyuncularıyla övünür. 1998'de ikinci lig şampiyonu olarak bir sezonluğuna en üst ligde mücadele etti. Taraftarları kendilerine “Bağcılar” der, çünkü eski sahaları üzüm bağlarının arasındaydı. Kulübün kadın takımı 2012'den beri liglerde oynuyor.",
    ],
    [
      'iron-anemia',
      'Demir eksikliği anemisi, dünyada en sık görülen kansızlık türüdür. Vücutta yeterli demir bulunmadığında hemoglobin yapımı azalır; hasta çabuk yorulur, rengi solar, tırnakları kolay kırılır. Tanıda ferritin düzeyi yol göstericidir. Tedavide ağızdan demir hapları verilir ve bunların portakal suyuyla alınması emilimi artırır. Çay ile kahve ise emilimi azalttığı için ilaçtan en az bir saat uzak tutulmalıdır.',
    ],
    [
      'b12-anemia',
      'B12 vitamini eksikliğine bağlı kansızlıkta alyuvarlar olağandan büyüktür. Bu vitamin yalnızca hayvansal besinlerde bulunduğundan veganlar risk altındadır; ayrıca mide ameliyatı geçirenlerde emilim bozulabilir. Hastalar ellerinde ve ayaklarında karıncalanmadan, unutkanlıktan ve dilde yanmadan yakınır. Tedavi genellikle kas içine yapılan iğnelerle başlar, sonra ayda bire düşürülür. Uzun süre tedavi edilmezse sinirlerdeki hasar kalıcı hâle gelebilir.',
    ],
    [
      'composer-nevres',
      "Udi Nevres Kandilli, 1871'de Üsküdar'da doğmuş bir bestecidir. İlk derslerini dayısından aldı, on yedi yaşında saraydaki fasıl heyetine girdi. Doksandan fazla şarkısı bilinir; en ünlüsü nihavent makamındaki “Gül Vakti”dir. 1908'den sonra evinde açtığı küçük okulda yetmişe yakın öğrenci yetiştirdi. Nota yazmayı sevmediği için eserlerinin çoğunu kızı Melek Hanım kâğıda geçirmiştir. 1934'te zatürreden öldü.",
    ],
    [
      'composer-saim',
      "Kemençeci Saim Ertuğ, 1889 yılında Selanik'te dünyaya geldi ve Balkan Savaşı'ndan sonra ailesiyle İzmir'e göç etti. Saz eserleriyle tanınır; özellikle altı peşrevi konservatuvarlarda hâlâ çalınır. 1927'de İzmir Radyosu'nun ilk yayınında bir taksim icra etmiştir. Plak şirketleriyle anlaşmazlığa düştüğü için geriye yalnızca on bir kayıt bırakmıştır. Kemençesi bugün kentin müzik müzesinde sergilenmektedir.",
    ],
    [
      'cheese-obruk',
      'Divle köyünde yapılan obruk peyniri, koyun sütünden üretilir ve oğlak derisinden tulumlara basılır. Tulumlar mayıs ayında yerin otuz altı metre altındaki bir obruğa indirilir ve ekimde çıkarılır. Mağaranın sıcaklığı yıl boyunca dört derece civarındadır. Bu sürede derinin üzeri önce beyaz, sonra mavi, en sonunda kırmızı küfle kaplanır. Peynirin keskin kokusu ve ufalanan bir dokusu vardır.',
    ],
    [
      'cheese-gravyer',
      'Kars gravyeri inek sütünden yapılan, büyük gözlü, sert bir peynirdir. Yapım yöntemi on dokuzuncu yüzyılın sonunda bölgeye gelen İsviçreli bir peynir ustasından öğrenilmiştir. Her biri altmış ila seksen kilo gelen tekerlekler en az on ay olgunlaştırılır. Gözler, olgunlaşma sırasında bakterilerin çıkardığı karbondioksitten oluşur. Kaliteli bir tekerleğe parmakla vurulduğunda tok ve derin bir ses duyulması beklenir.',
    ],
    [
      'bees',
      "Bal arısı kolonisinde tek bir kraliçe, birkaç yüz erkek arı ve elli bine kadar işçi bulunur. İşçi arılar besin kaynağının yönünü ve uzaklığını kovanda yaptıkları sallanma dansıyla anlatır. Bu dansın anlamını Avusturyalı bilim insanı Karl von Frisch çözmüş ve 1973'te Nobel ödülü almıştır. Yazın bir işçi yaklaşık altı hafta yaşarken kraliçenin ömrü beş yılı bulabilir.",
    ],
    [
      'caretta',
      'Caretta caretta deniz kaplumbağaları Akdeniz kıyılarında mayıs ile ağustos arasında yumurtlar. Dişi, geceleyin kumsala çıkar, arka yüzgeçleriyle yarım metre derinliğinde bir çukur kazar ve yüz kadar yumurta bırakır. Yavruların cinsiyetini kumun sıcaklığı belirler; sıcak yuvalardan daha çok dişi çıkar. Yumurtadan çıkan yavrular denizin parıltısına yönelir, bu yüzden sahildeki yapay ışıklar onları yanlış yöne çeker.',
    ],
    [
      'fault-line',
      "Kuzey Anadolu Fayı, doğuda Karlıova'dan batıda Saros Körfezi'ne kadar uzanan, yaklaşık bin iki yüz kilometrelik sağ yanal atımlı bir kırıktır. Anadolu levhası bu hat boyunca yılda ortalama iki buçuk santimetre batıya kayar. 1939'da Erzincan'da başlayan büyük depremler dizisi giderek batıya ilerlemiş, 1999'da Gölcük ve Düzce'ye ulaşmıştır. Jeologlar bir sonraki kırılmayı Marmara Denizi'nin altında bekliyor.",
    ],
    [
      'lake-salt',
      "Tuz Gölü, Türkiye'nin yüzölçümü bakımından ikinci büyük gölüdür, ancak derinliği çoğu yerde yarım metreyi geçmez. Dışarıya akıntısı olmadığından sular yazın buharlaşır ve otuz santimetreye varan bir tuz tabakası kalır. Ülkenin tuz ihtiyacının büyük bölümü buradan karşılanır. Göl, flamingoların Anadolu'daki en önemli üreme alanıdır; her bahar binlerce yuva kurulur. Kırmızı rengini bir tür alg verir.",
    ],
    [
      'law-tenant',
      'Kira hukukuna göre konut kiralarında depozito en fazla üç aylık kira bedeli kadar olabilir ve bankada vadeli bir hesapta tutulmalıdır. Kiracı, belirli süreli sözleşmeyi bitirmek isterse sürenin dolmasından en az on beş gün önce yazılı bildirimde bulunur. Ev sahibi ise yalnızca sürenin bitmesine dayanarak sözleşmeyi sona erdiremez. Olağan kullanımdan doğan eskimelerden kiracı sorumlu tutulamaz.',
    ],
    [
      'law-inventor',
      'Patent, bir buluşun sahibine yirmi yıl boyunca başkalarının o buluşu üretmesini ve satmasını yasaklama hakkı verir. Başvurunun kabul edilmesi için buluş yeni olmalı, buluş basamağı içermeli ve sanayiye uygulanabilmelidir. Matematik yöntemleri ile keşifler patentlenemez. Faydalı model ise daha küçük yenilikleri on yıllığına korur ve incelemesi daha kısa sürer. Yıllık ücret ödenmezse koruma kendiliğinden düşer.',
    ],
    [
      'inflation',
      'Enflasyon, mal ve hizmetlerin genel fiyat düzeyinin sürekli artmasıdır. Talep enflasyonunda harcamalar üretimden hızlı büyür; maliyet enflasyonunda ise enerji ya da ücretler pahalandığı için fiyatlar yükselir. Merkez bankaları buna karşı çoğunlukla faiz artırır, böylece kredi pahalılaşır ve tüketim yavaşlar. Sabit gelirliler en çok zarar gören kesimdir. Borçlular ise paranın değeri düştüğü için bir ölçüde kazançlı çıkar.',
    ],
    [
      'hazelnut-coop',
      "Yalıbük Fındık Kooperatifi 1968'de Giresun'un bir köyünde kırk üç üreticiyle yola çıktı. Kurucu başkanı emekli öğretmen Cevat Aksu'ydu. Bugün 2.100 ortağı olan kooperatif, yılda yaklaşık altı bin ton kabuklu fındık işler ve üçte ikisini İtalya'daki çikolata fabrikalarına satar. 2019'da yaktığı kabuklardan ısı üreten bir tesis açarak kurutma giderlerini yarıya indirdi.",
    ],
    [
      'carpet',
      "Gördes düğümü, Türk halılarında kullanılan simetrik düğümdür; ip iki çözgü teline birden dolanır ve uçları aradan çıkar. Bu sayede halı sıkı ve dayanıklı olur. İran'da yaygın olan Sine düğümü ise tek tele sarılır ve daha ince desenlere izin verir. Usta bir dokuyucu günde sekiz bin kadar düğüm atabilir. Kırmızı renk geleneksel olarak kökboyadan elde edilir.",
    ],
    [
      'sourdough',
      'Ekşi maya, un ile suyun birkaç gün bekletilmesiyle kendiliğinden oluşan bir maya ve bakteri topluluğudur. Hamura ekşiliğini laktik ve asetik asit verir. Canlı tutmak için düzenli olarak beslemek gerekir; buzdolabında haftada bir kez un ve su eklemek yeterlidir. Uzun mayalanma sırasında undaki fitik asit parçalandığından minerallerin emilimi kolaylaşır. Ekşi mayalı ekmek ayrıca daha geç bayatlar.',
    ],
    [
      'vaccine-history',
      "Çiçek aşısının öncülü olan variyolasyon, Osmanlı ülkesinde on sekizinci yüzyılda halk arasında uygulanıyordu. İngiliz elçisinin eşi Lady Mary Montagu yöntemi 1717'de İstanbul'da gördü, oğluna yaptırdı ve mektuplarıyla ülkesine tanıttı. 1796'da Edward Jenner inek çiçeğinden yararlanarak daha güvenli bir aşı geliştirdi. Dünya Sağlık Örgütü hastalığın yeryüzünden silindiğini 1980 yılında ilan etti.",
    ],
    [
      'telescope',
      "Kızıltepe Gözlemevi, Toroslar'da 2.480 metre yükseklikte yer alır. Ana teleskobunun aynası bir buçuk metre çapındadır ve 2001'de Rusya'da parlatılmıştır. Yılda ortalama iki yüz açık gece geçirir. Burada çalışan gökbilimci Ferda Onat, 2014'te adını verdiği bir kuyruklu yıldız keşfetti. Işık kirliliğini önlemek için çevredeki köylerde sokak lambaları kehribar renkli ve aşağıya dönük yapılmıştır.",
    ],
    [
      'oil-wrestling',
      "Kırkpınar yağlı güreşleri, Edirne'de on dördüncü yüzyıldan beri düzenlenen bir spor etkinliğidir. Pehlivanlar manda derisinden yapılmış kispet giyer ve vücutlarına zeytinyağı sürer. Başpehlivan altın kemeri bir yıl saklar; üç yıl üst üste kazanırsa kemerin sahibi olur. Güreşleri duayla açan ve sporcuları halka tanıtan kişiye cazgır denir. Gelenek 2010'da UNESCO listesine alınmıştır.",
    ],
    [
      'tea',
      "Türkiye'de çay tarımı 1920'lerde ziraatçı Zihni Derin'in Batum'dan getirttiği tohumlarla Rize'de başladı. İlk fabrika 1947'de açıldı. Bol yağış alan dik yamaçlarda yetişen bitki, mayıstan ekime kadar üç ya da dört kez toplanır. Kışın kar altında kaldığından zararlı böcekler az görülür ve ilaçlamaya pek gerek kalmaz. Kişi başına yıllık tüketim üç kiloyu aşar.",
    ],
    [
      'windmill',
      "Bozcaova Rüzgâr Santrali 2009'da on yedi türbinle elektrik üretmeye başladı. Her türbinin gücü üç megavat, kanat boyu ise kırk beş metredir. Rüzgâr saniyede yirmi beş metreyi aştığında kanatlar kendiliğinden durdurulur. Santral yaklaşık otuz sekiz bin evin tüketimini karşılar. Göçmen leyleklerin geçiş döneminde radarla izleme yapılır ve sürü yaklaşınca türbinler yavaşlatılır. İşletme müdürü Nilgün Sarp'tır.",
    ],
    [
      'hittite',
      "Hitit başkenti Hattuşa'da bulunan kil tabletler, 1915'te Çek bilgin Bedřich Hrozný tarafından çözüldü. Araştırmacı, “ekmek” anlamına gelen bir işaretten yola çıkarak dilin Hint-Avrupa ailesinden olduğunu gösterdi. Tabletler arasında Mısır'la imzalanan Kadeş Antlaşması'nın bir kopyası da vardır. Kentin altı kilometrelik surlarındaki Aslanlı Kapı bugün ziyaretçilerin en çok fotoğrafladığı yerdir. Devlet, MÖ 1180 dolaylarında yıkılmıştır.",
    ],
    [
      'glass',
      "Cam, kum, soda ve kirecin bin beş yüz derecede eritilmesiyle elde edilir. Soda erime noktasını düşürür, kireç ise camın suda çözünmesini önler. Rengi metal oksitler belirler: kobalt mavi, krom yeşil, altın tozu yakut kırmızısı verir. Beykoz'da on dokuzuncu yüzyılda yapılan çeşmibülbüller, içine sarmal biçimde renkli çubuklar yerleştirilmiş ince işlerdir. Cam yavaş soğutulmazsa çatlar.",
    ],
    [
      'island-ferry',
      "Kuzukada ile anakara arasındaki feribot seferleri 1962'de “Martı” adlı küçük bir vapurla başladı. Bugün yazın günde on dört, kışın altı sefer yapılır ve geçiş yirmi beş dakika sürer. Adada özel otomobil yasaktır; halk bisiklet ve elektrikli minibüs kullanır. Adanın nüfusu kışın sekiz yüz iken ağustosta on bini geçer. İçme suyu denizden arıtılarak sağlanır.",
    ],
    [
      'alphabet',
      "Türkiye'de Latin harflerine geçiş 1 Kasım 1928'de kabul edilen yasayla gerçekleşti. Yeni alfabede yirmi dokuz harf vardır; bunların sekizi ünlüdür. Yetişkinlere okuma yazma öğretmek için millet mektepleri açıldı ve ilk yıl bir milyondan fazla kişi kurslara katıldı. Gazeteler ilk aylarda iki yazıyı yan yana bastı. Q, w ve x harfleri alfabeye alınmadı.",
    ],
    [
      'dam',
      "Çatakderesi Barajı, 1979 ile 1986 arasında sulama amacıyla kuruldu. Kaya dolgu gövdesinin yüksekliği 87 metredir. Göl dolarken üç köy boşaltıldı ve 1.300 kişi yeni kurulan Umutlu beldesine taşındı. Su, kırk kilometrelik bir kanalla pamuk tarlalarına ulaştırılır. 2007'deki kuraklıkta doluluk oranı yüzde on birin altına inince eski köyün minaresi yeniden görünmüştü.",
    ],

    [
      'note-coffee',
      'Kahvemi sütsüz ve şekersiz içerim, ama öğleden sonra üçten sonra kafein almıyorum, uykum kaçıyor.',
    ],
    [
      'note-dentist',
      "Diş hekimi randevum 14 Mart perşembe saat 16.30'da, Dr. Gülay Hanım'ın muayenehanesinde. Dolgu yapılacak.",
    ],
    ['note-sister', "Ablam Şebnem Eskişehir'de veteriner, iki kedisi var: Pamuk ve Zeytin. Eylülde ikizleri doğacak."],
    ['note-seat', 'uçakta hep koridor tarafı istiyorum, pencere kenarında bacaklarım sıkışıyor'],
    [
      'note-project',
      "Depo otomasyonu projesinin teslim tarihi 30 Haziran'a ertelendi, müşteri barkod okuyucuları geç gönderdi.",
    ],
    [
      'note-backup',
      "Sunucunun yedeği her gece 02.15'te alınıyor, başarısız olursa uyarı Tolga'nın telefonuna düşüyor.",
    ],
    [
      'note-landlord',
      "Ev sahibi aradı, kirayı ayın beşine kadar yatırmamızı istiyor. Yeni IBAN'ı mesajla gönderecekmiş.",
    ],
    ['note-allergy', "Oğlum Deniz'in fıstığa ciddi alerjisi var, çantasında her zaman adrenalin iğnesi taşıyor."],
    ['note-school', "Deniz'in okulu servis saatini değiştirdi: artık sabah 7.20'de apartmanın önünde olmamız lazım."],
    [
      'note-car',
      'Arabayı geçen hafta muayeneden geçirdim, bir sonraki 2027 şubatında. Ön lastikler biraz aşınmış dediler.',
    ],
    ['note-gift', 'Annemin doğum günü için seramik kursu hediye etmeyi düşünüyorum, geçen yaz çok heveslenmişti.'],
    ['note-intern', "Yeni stajyer Berfin pazartesi başlıyor, ilk iki hafta test ekibinde Okan'la çalışacak."],
    ['note-meeting', "Salı toplantıları bundan sonra saat 10'da değil 9.45'te, çünkü Rotterdam ekibi de katılacak."],
    ['note-language', 'Bana cevap verirken kısa yaz lütfen, madde işareti kullanma, düz cümle olsun.'],
    ['note-run', 'Kasımda yarı maratona hazırlanıyorum; haftada dört gün koşu, pazar günleri uzun mesafe.'],
    ['note-neighbor', 'Üst kattaki Rıfat Amca anahtarımızın yedeğini tutuyor, tatilde çiçekleri de o suluyor'],
    ['note-plumber', 'Banyodaki sızıntıyı tesisatçı Muammer usta onardı, 1.850 lira tuttu, iki yıl garanti verdi.'],
    ['note-book', "Kitap kulübünde bu ay Tanpınar okuyoruz, buluşma ayın son cuması Leyla'nın evinde."],
    [
      'note-wifi',
      'Yazlıktaki modem mutfak dolabının üstünde, internet kesilirse fişini çekip on saniye beklemek yetiyor.',
    ],
    ['note-boss', 'Müdürüm Hakan Bey e-postayı sevmez, acil bir şey varsa doğrudan aramamı söyledi.'],
    ['note-diet', 'Doktor tansiyonum için tuzu azaltmamı söyledi. Turşu ve sucuğu bıraktım, bir ay sonra kontrol var.'],
    ['note-honeymoon', "Kuzenim Ece'nin düğünü 23 Ağustos'ta Ayvalık'ta, nikâh şahidi ben olacağım"],
    ['note-printer', 'ofisteki yazıcı ikinci kattan dördüncü kata taşındı, şifre hâlâ personel numarası'],
    ['note-guitar', 'İlkokuldan beri keman çalıyorum ama bu kış ilk kez viyolonsele başladım, hocam Aras Bey.'],
    ['note-passport', "Pasaportumun süresi 9 Aralık'ta doluyor, yenilemek için ekimde başvurmam gerekiyor, hatırlat."],
    [
      'note-friend',
      "Üniversiteden arkadaşım Volkan Kanada'ya taşındı, Halifax'ta bir oyun stüdyosunda animatör olmuş.",
    ],
    ['note-invoice', 'Muhasebeye faturaları her ayın yirmisinden önce yollamak şart, geç kalan sonraki aya kalıyor.'],
    [
      'note-garden',
      'Balkona bu sene domates yerine biber ve fesleğen ektim, salyangozlar geçen yıl domatesleri bitirmişti.',
    ],
    ['note-database', "Raporlama veritabanını MySQL'den PostgreSQL'e geçirdik, eski sunucu mayıs sonunda kapatılacak."],
    ['note-film', 'Korku filmlerinden hiç hoşlanmam, film önerirken komedi ya da belgesel seç lütfen'],
  ],
  questions: [
    ['Sine düğümü nedir?', ['carpet']],
    ['Cazgır kimdir?', ['oil-wrestling']],
    ['Patent süresi?', ['law-inventor']],
    ['Gravyer neden delikli?', ['cheese-gravyer']],
    ['Hitit dilini kim çözdü?', ['hittite']],
    ['Volkan nerede yaşıyor?', ['note-friend']],
    ['Diş randevusu ne zaman?', ['note-dentist']],
    ['Yedek anahtar kimde?', ['note-neighbor']],

    ["Beyköy'deki yedi kemerli köprüyü hangi mimar inşa etti?", ['bridge-stone']],
    ["Kessler'in tasarladığı köprü günümüzde ne işe yarıyor?", ['bridge-iron']],
    ["Karahisar'da öğretmenlerin kurduğu takımın taraftarlarına ne ad verilir?", ['club-idman']],
    ['Demir ilacını neyle içmek daha faydalı?', ['iron-anemia']],
    ["Nevres'in bestelerini notaya kim aldı?", ['composer-nevres']],
    ['Divle peyniri hangi aylar arasında yeraltında bekletilir ve hangi hayvanın sütünden yapılır?', ['cheese-obruk']],
    ['Arıların dansının ne anlattığını kim buldu?', ['bees']],
    ['Deniz kaplumbağası yavrularının erkek mi dişi mi olacağı neye bağlı?', ['caretta']],
    ['Ev sahibi en çok ne kadar depozito isteyebilir?', ['law-tenant']],
    ['Fındık kooperatifi ürününün çoğunu nereye ihraç ediyor?', ['hazelnut-coop']],
    ["Rize'de ilk çay fabrikası hangi yıl faaliyete geçti?", ['tea']],
    ['Fırtınalı havada rüzgâr türbinleri hangi hızda durur?', ['windmill']],
    ['Çocuğumun hangi besine karşı alerjisi vardı?', ['note-allergy']],
    ['Uçak bileti alırken nereden yer seçeyim?', ['note-seat']],
    ['Gece yedeklemesi aksarsa kime haber gidiyor?', ['note-backup']],
    ['Ece nerede ve hangi gün evleniyor?', ['note-honeymoon']],
    ['Banyo tamirine ne kadar para verdik?', ['note-plumber']],
    ['Ablamın mesleği ne, hangi şehirde oturuyor?', ['note-sister']],
    ["Hakan Bey'e acil durumda nasıl ulaşmalıyım?", ['note-boss']],
    ['Bu yıl balkonda neler yetiştiriyorum?', ['note-garden']],

    [
      "Balkan Savaşı'nın ardından İzmir'e gelen kemençe ustasının neden bu kadar az plağı var, günümüze kaç kaydı ulaşmış, biliyor musun?",
      ['composer-saim'],
    ],
    [
      'Vegan beslenen bir arkadaşım ellerinin uyuştuğunu söylüyor. Böyle karıncalanma yapan vitamin eksikliği hangisidir ve tedavisine genellikle nasıl başlanır, tedavi edilmezse ne olur?',
      ['b12-anemia'],
    ],
    [
      "Lady Montagu'nun İstanbul'da görüp İngiltere'ye anlattığı yöntemin konusu olan hastalığın tamamen ortadan kalktığı hangi yıl resmen açıklandı?",
      ['vaccine-history'],
    ],
    [
      "Toroslar'daki gözlemevinin yakınındaki yerleşimlerde gökyüzünün karanlık kalması için sokak aydınlatmasında ne gibi önlemler alınmış, lambalar nasılmış?",
      ['telescope'],
    ],
    [
      "Hafta sonu günübirlik bir ada gezisi planlıyoruz. Kuzukada'ya kendi arabamızla girebilir miyiz, yoksa orada insanlar başka hangi araçlarla dolaşıyor?",
      ['island-ferry'],
    ],
    [
      'Baraj gölünün suları kuraklık yüzünden çok çekildiğinde ortaya çıkan yapı neydi ve bu olay tam olarak hangi yıl yaşanmıştı?',
      ['dam'],
    ],
    [
      'Fiyatlar durmadan yükselince merkez bankası ne yapar, bu durumdan hangi kesimler en fazla zarar görür, kimler az da olsa yarar sağlar?',
      ['inflation'],
    ],
    [
      'Evde kendi ekmeğimi yapmaya başladım. Buzdolabında duran ekşi mayanın ölmemesi için onu ne sıklıkta ve neyle beslemem gerekiyor acaba?',
      ['sourdough'],
    ],
    [
      'Yurt dışına çıkmayı düşünüyorum da, pasaportum ne zamana kadar geçerliydi ve yenisi için hangi ayda başvuru yapmam gerektiğini söylemiştim?',
      ['note-passport'],
    ],
    [
      'Müşteriye mail yazacağım. Depo otomasyonu işini en geç hangi güne kadar bitirmemiz gerekiyor ve bu iş neden gecikmişti, kısaca hatırlatır mısın?',
      ['note-project'],
    ],
    [
      'Pazartesi aramıza katılacak stajyerin adı neydi, ilk haftalarda hangi ekipte ve kimin yanında çalışacağını da hatırlatabilir misin acaba?',
      ['note-intern'],
    ],
    [
      'Bu akşam birlikte bir şeyler izleyeceğiz. Bana öneri yapmadan önce söyler misin, hangi türden filmleri sevmediğimi ve neleri tercih ettiğimi biliyor musun?',
      ['note-film'],
    ],
  ],
  unanswerable: [
    'Eyfel Kulesi kaç metre yüksekliğindedir?',
    'Penguenler kışın nasıl ısınır?',
    'Satrançta rok nasıl yapılır?',
    'Köpeğimin aşıları hangi ay yapılacaktı?',
    "Mars'a gönderilen ilk uzay aracının adı neydi?",
    'Fotosentez hangi organelde gerçekleşir?',
    'Evlat edinmek isteyen çiftler hangi belgeleri hazırlamalı?',
    "Fransız Devrimi'nin başlıca nedenleri nelerdi?",
    'Spor salonu üyeliğim aylık kaç lira?',
    'Muhtar seçimlerinde kimler oy kullanabilir?',
    'Kuantum bilgisayarlar sıradan bilgisayarlardan nasıl ayrılır?',
    'Diyabet hastaları insülini nasıl saklamalı?',
    "Japonya'da çalışmak için hangi vize gerekir?",
    'Yeni aldığım çamaşır makinesinin markası neydi?',
    'Mona Lisa tablosu hangi müzede sergileniyor?',
    'Basketbolda üç sayı çizgisi potaya ne kadar uzaktır?',
    'Bisikletimi hangi renge boyatmıştım?',
    'Kutup ayıları neden balık avlamak yerine fok peşinde koşar?',
    'Geçen yıl sigortacıyla yaptığımız poliçenin numarasını ve hangi hasarları karşıladığını hatırlıyor musun?',
    "Roma İmparatorluğu'nda kölelerin özgürlüğüne kavuşması hangi koşullarda mümkün oluyordu?",
  ],
};
