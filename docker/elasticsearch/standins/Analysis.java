package arecall.standins;

import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.core.WhitespaceTokenizer;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.miscellaneous.ASCIIFoldingFilter;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.pattern.PatternCaptureGroupTokenFilter;
import org.elasticsearch.index.analysis.AbstractTokenFilterFactory;
import org.elasticsearch.index.analysis.AbstractTokenizerFactory;
import org.elasticsearch.index.analysis.PreConfiguredTokenFilter;
import org.elasticsearch.index.analysis.PreConfiguredTokenizer;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.AnalysisPlugin;

/** Of the module analysis-common, what the mappings of security's own index name, and common company: Lucene's classes. */
final class Analysis {
    private Analysis() {}

    static Map<String, AnalysisProvider<TokenFilterFactory>> filters() {
        return Map.of(
            "asciifolding", (index, environment, name, settings) -> filter(name, ASCIIFoldingFilter::new),
            "lowercase", (index, environment, name, settings) -> filter(name, LowerCaseFilter::new),
            "unique", (index, environment, name, settings) -> filter(name, RemoveDuplicatesTokenFilter::new),
            "pattern_capture", AnalysisPlugin.requiresAnalysisSettings((index, environment, name, settings) -> {
                boolean keep = settings.getAsBoolean("preserve_original", true);
                Pattern[] patterns =
                    settings.getAsList("patterns").stream().map(Pattern::compile).toArray(Pattern[]::new);
                return filter(name, input -> new PatternCaptureGroupTokenFilter(input, keep, patterns));
            }));
    }

    static Map<String, AnalysisProvider<TokenizerFactory>> tokenizers() {
        return Map.of(
            "uax_url_email", (index, environment, name, settings) -> tokenizer(name, UAX29URLEmailTokenizer::new),
            "whitespace", (index, environment, name, settings) -> tokenizer(name, WhitespaceTokenizer::new));
    }

    static List<PreConfiguredTokenFilter> readyFilters() {
        return List.of(
            PreConfiguredTokenFilter.singleton("asciifolding", true, ASCIIFoldingFilter::new),
            PreConfiguredTokenFilter.singleton("unique", false, RemoveDuplicatesTokenFilter::new));
    }

    static List<PreConfiguredTokenizer> readyTokenizers() {
        return List.of(
            PreConfiguredTokenizer.singleton("uax_url_email", UAX29URLEmailTokenizer::new),
            PreConfiguredTokenizer.singleton("whitespace", WhitespaceTokenizer::new));
    }

    private static TokenFilterFactory filter(String name, UnaryOperator<TokenStream> wrap) {
        return new AbstractTokenFilterFactory(name) {
            @Override
            public TokenStream create(TokenStream input) {
                return wrap.apply(input);
            }
        };
    }

    private static TokenizerFactory tokenizer(String name, Supplier<Tokenizer> make) {
        return new AbstractTokenizerFactory(name) {
            @Override
            public Tokenizer create() {
                return make.get();
            }
        };
    }
}
