// Search for questions: a page needs most of the words, not all, rare words weigh more, and headings and terms
// of the glossary are found by their words. Sphinx's own search requires all words on one page.
(() => {
    const ofAll = Search.performTermsSearch;
    const stem = new Stemmer();
    const words = text => splitQuery(text.toLowerCase()).filter(w => !stopwords.has(w)).map(w => stem.stemWord(w));

    Search.performTermsSearch = (asked, excluded) => {
        const {alltitles, docnames, filenames, indexentries, titles} = Search._index;
        const weights = new Map(), pages = new Map(), places = new Map();
        for (const word of asked) {
            const found = ofAll(new Set([word]), excluded);
            weights.set(word, Math.log(1 + docnames.length / (found.length || docnames.length)));
            for (const result of found) {
                const page = pages.get(result[0]) ?? {result, scores: new Map()};
                pages.set(result[0], page);
                page.scores.set(word, result[4]);
            }
        }
        const sum = of => [...weights].reduce((all, [word, weight]) => all + weight * of(word), 0);
        const whole = sum(() => 1);
        for (const {result, scores} of pages.values()) result[4] = sum(word => scores.get(word) ?? 0) / whole;
        const results = [...pages.values()].map(page => page.result);
        if (asked.size < 2) return results;
        // A heading or term counts if it has a share of the question's words, and few other words.
        const kinds = [["title", alltitles], ["index", indexentries]];
        const entries = kinds.flatMap(([kind, found]) => Object.entries(found).map(entry => [kind, ...entry]));
        for (const [kind, text, found] of entries) {
            const own = new Set(words(text)), known = [...own].filter(word => asked.has(word)).length;
            const share = sum(word => own.has(word)) / whole / 2 + known / asked.size / 2;
            const score = 20 * share + 10 * known / own.size;
            if (!(share * known > 0.1 * own.size)) continue;
            for (const [file, id] of found) {
                const at = `${file}#${id}`, title = titles[file] === text ? text : `${titles[file]} > ${text}`;
                if (score <= places.get(at)?.[4]) continue;
                places.set(at, [docnames[file], title, id ? `#${id}` : "", null, score, filenames[file], kind]);
            }
        }
        results.push(...places.values());
        const best = Math.max(...results.map(result => result[4]));
        return results.filter(result => result[4] >= best / 4);
    };
})();
