"""A small grammar of German and English, made for the demo corpus (corpus.py, beside this folder).

From words to sentences:

    declension, conjugation     the forms of single words
    vocabulary, verbs           the words
    phrases                     words of both languages with the links between them
    noun_phrases, numerals, times, places, complements      the parts of a clause
    casts, people, things       who does something, and to what
    scenes, repertoire          which verb goes with whom and what; circumstances: why
    casting                     fills the roles of a scene by chance
    clauses, german_order, english_order                    put a clause into words
    questions, relatives, subordinates, sentences           the sentence types
"""
