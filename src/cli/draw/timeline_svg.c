/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline as SVG. Blue and orange are told apart by the colour-blind and differ in brightness
 * on paper; switching is hatched, so that it needs no colour at all.
 */
#include <errno.h>

#include "cli/cli.h"
#include "cli/draw/svg_text.h"
#include "cli/draw/timeline.h"

enum {
	WIDTH = 1000,
	LEFT = 24,
	PLOT = WIDTH - 2 * LEFT,
	TOP = 92,
	LANE = 112, /* from one lane to the next */
	BAR = 34,
};

static double x_of(const struct gp_timeline *t, uint64_t at_ns)
{
	uint64_t ns = at_ns < t->to_ns ? at_ns : t->to_ns;

	return LEFT + PLOT * (double)(ns - t->from_ns) / (double)(t->to_ns - t->from_ns);
}

static void legend_entry(FILE *out, int x, const char *fill, const char *label)
{
	fprintf(out,
	        "<rect x=\"%d\" y=\"48\" width=\"16\" height=\"16\" fill=\"%s\" stroke=\"#555\" "
	        "stroke-width=\"0.5\"/><text x=\"%d\" y=\"61\">",
	        x, fill, x + 22);
	gp_svg_text(out, label);
	fputs("</text>\n", out);
}

static void head(FILE *out, unsigned n, const char *title, const char *lc, const char *be)
{
	unsigned height = TOP + n * LANE + 24;

	fprintf(out,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
	        "viewBox=\"0 0 %d %u\" font-family=\"sans-serif\" font-size=\"14\" fill=\"#222\">\n"
	        "<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" "
	        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
	        "<rect width=\"5\" height=\"5\" fill=\"#fff\"/>"
	        "<rect width=\"2\" height=\"5\" fill=\"#777\"/></pattern></defs>\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	        "<text x=\"%d\" y=\"30\" font-size=\"18\" font-weight=\"bold\">",
	        WIDTH, height, WIDTH, height, LEFT);
	gp_svg_text(out, title);
	fputs("</text>\n", out);
	legend_entry(out, LEFT, "#0072b2", lc);
	legend_entry(out, LEFT + 170, "#f0c36d", be);
	legend_entry(out, LEFT + 340, "url(#hatch)", "switching");
	fprintf(out,
	        "<path d=\"M%d 52l12 0l-6 10z\" fill=\"#d00\"/><text x=\"%d\" y=\"61\">"
	        "a request arrives; the bracket is its response time</text>\n",
	        LEFT + 472, LEFT + 490);
}

static void spans(FILE *out, const struct gp_timeline *t, int y)
{
	for (unsigned i = 0; i < t->nspans; i++) {
		const struct gp_timeline_span *s = &t->span[i];
		const char *fill = s->task < 0                           ? "url(#hatch)"
		                   : s->task == (int32_t)t->request_task ? "#0072b2"
		                                                         : "#f0c36d";

		fprintf(out,
		        "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n",
		        x_of(t, s->from_ns), y, x_of(t, s->to_ns) - x_of(t, s->from_ns), BAR, fill);
	}
}

static void marks(FILE *out, const struct gp_timeline *t, int y)
{
	char duration[32];

	for (unsigned i = 0; i < t->nmarks; i++) {
		const struct gp_timeline_mark *m = &t->mark[i];
		double from = x_of(t, m->arrival_ns), to = x_of(t, m->done_ns);

		fprintf(out, "<path d=\"M%.2f %dl-5 -9l10 0z\" fill=\"#d00\"/>\n", from, y - 2);
		if (m->done_ns > t->to_ns)
			continue; /* answered outside the picture */
		fprintf(out,
		        "<path d=\"M%.2f %dl0 6L%.2f %dl0 -6\" fill=\"none\" stroke=\"#222\"/>"
		        "<text x=\"%.2f\" y=\"%d\" font-size=\"12\">%s</text>\n",
		        from, y + BAR + 4, to, y + BAR + 10, from, y + BAR + 25,
		        gp_cli_duration(duration, sizeof duration, m->done_ns - m->arrival_ns));
	}
}

static void axis(FILE *out, const struct gp_timeline *t, int y)
{
	for (uint64_t at_ns = t->from_ns; at_ns <= t->to_ns; at_ns += GP_NS_PER_MS)
		fprintf(out,
		        "<path d=\"M%.2f %dl0 5\" stroke=\"#888\"/>"
		        "<text x=\"%.2f\" y=\"%d\" font-size=\"11\" text-anchor=\"%s\" "
		        "fill=\"#666\">%llu ms</text>\n",
		        x_of(t, at_ns), y, x_of(t, at_ns), y + 17,
		        at_ns == t->from_ns               ? "start"
		        : at_ns + GP_NS_PER_MS > t->to_ns ? "end"
		                                          : "middle",
		        (unsigned long long)((at_ns - t->from_ns) / GP_NS_PER_MS));
}

int gp_timeline_svg(FILE *out, const struct gp_timeline *t, unsigned n, const char *title,
                    const char *lc, const char *be)
{
	head(out, n, title, lc, be);
	for (unsigned i = 0; i < n; i++) {
		int y = TOP + (int)i * LANE;

		fprintf(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">", LEFT, y + 8);
		gp_svg_text(out, t[i].label);
		fputs("</text>\n", out);
		fprintf(out,
		        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f4f4f4\"/>\n",
		        LEFT, y + 28, PLOT, BAR);
		spans(out, &t[i], y + 28);
		marks(out, &t[i], y + 28);
	}
	axis(out, &t[0], TOP + (int)n * LANE);
	fputs("</svg>\n", out);
	return ferror(out) ? -EIO : 0;
}
