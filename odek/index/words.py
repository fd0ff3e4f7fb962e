"""Small words of some languages, pleasantries, and irregular forms of English. Data alone."""

# ruff: noqa: RUF001 - letters of other alphabets are meant

__all__ = ["FILLERS", "IRREGULAR", "STOPPED_BY_SCRIPT", "STOP_WORDS"]

_STOPPED = {
    "english": """
a about after again all also am an and any are as at be because been before being both but by can could
did do does doing done each for from had has have having he her here hers him his how i if in into is it
its itself just like may me might more most much must my myself no nor not of on or other our out over own
she should so some such than that the their them then there these they this those through to too under up
us very was we were what when where which while who whom whose why will with would you your yours""",
    "german": """
aber als am an auch auf aus bei beim bin bis bist da damit das dass dein dem den der des die dies diese
dieser dir doch du durch ein eine einem einen einer er es für gegen hat hatte ich ihr im ist ja kann kein
keine man mein meine meinem meinen meiner mich mir mit nach nicht noch nur oder ohne schon sein seine
sich sie sind so um und uns unter vom von vor war was wann warum welche welchem welchen welcher welches
wenn wer werden wie wir wird wo wurde zu zum zur über""",
    "french": """
au aux avec avait ce ces cette dans de des du elle en est et eux il ils je la le les leur lui ma mais me
mes mon ne nos notre nous on ou où par pas pour quand que quel quelle qui quoi sa sans se ses son sont sur
ta te tes toi ton tu un une vos votre vous à été était c d j l n qu s""",
    "spanish": """
al como con cuando cuándo cual cuál de del desde donde dónde el ella en entre era es esta este esto está
fue ha hay la las le les lo los más me mi muy no nos o para pero por porque que qué quien quién se ser si
sin sobre son su sus también te tiene tu un una y ya yo""",
    "italian": """
ai al alla anche che chi ci come con così da dal dalla dei del della delle di dove e è ed era essere gli
ha ho i il in io la le lei lo loro lui ma mi mio nel nella non o per perché più quale quando quanto
questa questo se si sono sua suo su sul tra tu un una uno""",
    "portuguese": """
ao aos as até com como da das de do dos e é ela ele em era essa esse esta está este eu foi há isso já lhe
mais mas me meu minha muito na não nas no nos o onde os ou para pela pelo por quando qual que quem se sem
ser seu sua são também te tem um uma você""",
    "dutch": """
aan al als bij dat de deze die dit door een en er geen had heb hebben heeft het hij hoe ik in is je kan
maar me met mijn naar niet nog of om onder ons ook op over te tot uit van veel voor waar wanneer want
waren was wat we wel werd wie wij worden zal ze zich zij zijn zo""",
    "swedish": """
alla att av blev de dem den denna det detta dig din du efter ej en er ett från för ha hade han har hon
hur här i inte jag kan man med men mig min när någon och om oss på sig sin ska som så till under upp ut
vad var vem vi vid är över""",
}

_STOPPED_BY_SCRIPT = """
а без бы был была были было быть в вам вас весь во вот все всего вы где да для до его ее её если есть еще
ещё же за и из или им их к как какая какие какой какую когда кого кому который которая которые которое
кто куда ли меня мне мной мои мой моя моё мы на над нам нас наш не него нее ней нет ни них но о об он она
они оно от откуда по под почему при про с сам свой себе себя со так также там твой те тебе тебя то тоже
только тот ты у уже чего чей чем через что чтобы чья эта эти это этот я зачем сколько каких каком какому
какого чём ком
في من إلى الى على عن مع هل ما ماذا متى أين اين كيف لماذا لم لن لا كم أي اي كان كانت يكون هو هي هم نحن أنا
انا أنت انت هذا هذه ذلك تلك التي الذي الذين أن ان إن أو او ثم قد كل بعد قبل عند منذ بين حتى و
का के की को से में पर और है हैं था थी थे हो हुआ हुई हुए क्या क्यों कब कहाँ कहां कौन किस किन किसने किसका
किसकी कितना कितने कितनी कैसे कैसा कैसी यह वह ये वे मैं हम तुम आप मेरा मेरी मेरे हमारा हमारी हमारे उसका
उसकी उसके इस उस ने भी तो ही नहीं कि जो जब तक लिए साथ एक या अब कर करना करने किया गया गई गए रहा रही रहे
होता होती होते जाता जाती
και να το τα τη την της τον του των ο η οι σε στο στη στην στα με για από που πού πότε πως πώς τι ποιος
ποια ποιο είναι ήταν δεν θα μου σου μας σας αν ή"""

STOP_WORDS = {language: frozenset(words.split()) for language, words in _STOPPED.items()}
"""Words that say little, by language; they also tell which language a text is in."""

STOPPED_BY_SCRIPT = frozenset(_STOPPED_BY_SCRIPT.split())
"""Words that say little in Russian, Arabic, Hindi and Greek, whatever the language of the text around."""

_PLEASANTRIES = """
actually add again ahead alright already amazing answer anything appreciate ask awesome better bit bye carry
change check cheers close complete continue cool correct create delete different done edit else everything
exactly excellent explain fantastic fine finish first fix get give go going good goodbye got great happen
happened hello help hey hi hmm instead interesting keep know last later let lets like little look looks lot
make maybe mean mind minute moment more morning need never next nice night no nope noted nothing now ok okay
once open perfect please proceed put quite read ready really redo remove repeat right run say second see show
something sorry sounds start still stop sure take tell thank thanks thing things think thx today try undo
understood update use wait want way welcome well wonderful work working works write yeah yep yes yet
bitte danke dann doch genau gut hallo ja klar los mach nein prima richtig stimmt super tschüss vielen weiter
accord allez beaucoup bien bon bonjour continuer merci non oui parfait salut svp
adelante adiós ahora bueno claro continúa favor gracias hola muchas perfecto sigue sí vale
avanti bene certo ciao continua grazie perfetto prego sì va
bem obrigada obrigado olá perfeito sim tchau
bedankt dank goed graag nee verder bra fortsätt hej nej perfekt tack
да дальше ладно нет ок отлично пожалуйста пока привет продолжай продолжайте спасибо хорошо
استمر تمام حسنا شكرا فضلك لا مرحبا نعم
कृपया जारी ठीक धन्यवाद नमस्ते नहीं रखो हाँ है
はい いいえ ありがとう ありがとうございます お願いします オッケー 続けて 続けてください 次 大丈夫 了解
你好 下一步 不 不是 可以 好 好的 对 是 是的 没问题 继续 行 请 谢谢
감사합니다 계속 고마워 네 부탁해요 아니요 안녕하세요 알겠습니다 예 좋아 좋아요
ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ ครับ ค่ะ ต่อ สวัสดี ใช่ ได้ โอเค ไม่"""

FILLERS = frozenset(_PLEASANTRIES.split()).union(STOPPED_BY_SCRIPT, *STOP_WORDS.values())
"""What is said to go on, to agree or to be polite, and small words of any language: a question of these
alone is about nothing."""

# Base form first. Forms that are words of their own far more often (left, saw, found, bit) are kept where
# the verb is what notes about people and work mean by them.
_FAMILIES = """
go went gone goes
buy bought
bring brought
think thought
teach taught
catch caught
fight fought
seek sought
make made
take took taken
give gave given
get got gotten
come came
become became
begin began begun
run ran
swim swam swum
sing sang sung
ring rang rung
drink drank drunk
sink sank sunk
write wrote written
drive drove driven
ride rode ridden
rise rose risen
eat ate eaten
see saw seen
know knew known
grow grew grown
throw threw thrown
fly flew flown
draw drew drawn
show showed shown
speak spoke spoken
break broke broken
steal stole stolen
choose chose chosen
freeze froze frozen
wear wore worn
tear tore torn
forget forgot forgotten
hide hid hidden
bite bit bitten
fall fell fallen
feel felt
keep kept
sleep slept
meet met
lead led
feed fed
read reads
leave left
lose lost
send sent
spend spent
lend lent
build built
burn burnt
learn learnt
sell sold
tell told
hold held
stand stood
understand understood
find found
win won
hear heard
say said
pay paid
sit sat
shoot shot
hang hung
stick stuck
strike struck
swear swore sworn
wake woke woken
shake shook shaken
mistake mistook mistaken
undergo underwent undergone
overcome overcame
withdraw withdrew withdrawn
foresee foresaw foreseen
rewrite rewrote rewritten
rebuild rebuilt
resend resent
child children
person people persons
man men
woman women
mouse mice
foot feet
tooth teeth
goose geese
life lives
wife wives
knife knives
leaf leaves
shelf shelves
half halves
wolf wolves
index indices indexes
vertex vertices
matrix matrices
analysis analyses
good better best
bad worse worst
"""

IRREGULAR = {
    form: family[0] for family in map(str.split, _FAMILIES.strip().splitlines()) for form in family[1:]
}
"""English form → the form under which it is found."""
