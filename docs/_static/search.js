// Search for questions: a page needs most of the words, not all, rare words weigh more, and headings and terms
// of the glossary are found by their words. Sphinx's own search requires all words on one page.
(() => {
    const ofAll = Search.performTermsSearch;
    const stem = new Stemmer();
    const words = text => splitQuery(text.toLowerCase()).filter(w => !stopwords.has(w)).map(w => stem.stemWord(w));

    Search.performTermsSearch = (asked, excluded) => {
        const {alltitles, docnames, filenames, indexentries, titles} = Search._index;
        const weights = new Map(), pages = new Map();
        for (const word of asked) {
            const found = ofAll(new Set([word]), excluded);
            weights.set(word, Math.log(1 + docnames.length / (found.length || docnames.length)));
            for (const result of found) {
                const page = pages.get(result[0]) ?? {result, scores: new Map()};
                page.scores.set(word, result[4]);
                pages.set(result[0], page);
            }
        }
        const sum = (of = () => 1) => [...weights].reduce((all, [word, weight]) => all + weight * of(word), 0);
        const whole = sum() || 1;
        const results = [...pages.values()].map(({result, scores}) => {
            result[4] = sum(word => scores.get(word) ?? 0) / whole;
            return result;
        });
        if (asked.size < 2) return results;
        // A heading or term with a share of the question's words, and few other words.
        const add = (text, file, id, kind) => {
            const own = new Set(words(text));
            const found = [...own].filter(word => asked.has(word)).length;
            const share = sum(word => own.has(word)) / whole / 2 + found / asked.size / 2;
            const known = found / own.size;
            if (!(share * known > 0.1)) return;
            const title = titles[file] === text || kind === "index" ? titles[file] : `${titles[file]} > ${text}`;
            results.push([docnames[file], title, id ? `#${id}` : "", null, 20 * share + 10 * known, filenames[file], kind]);
        };
        for (const [text, places] of Object.entries(alltitles))
            for (const [file, id] of places) add(text, file, id, "title");
        for (const [text, places] of Object.entries(indexentries))
            for (const [file, id, main] of places) if (main) add(text, file, id, "index");
        const best = Math.max(...results.map(result => result[4]));
        return results.filter(result => result[4] >= best / 3);
    };
})();
